"""What ends with its `with` block, however that is left."""

from abc import ABC, abstractmethod
from types import TracebackType


class Closing(ABC):
    """Has `close` called at the end of the block."""

    @abstractmethod
    def close(self) -> None:
        """End everything; twice does no harm."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
