"""What settings systemd knows, in its own words; by tests/oracle/extract_directives.py.

Each record: kind of the value, sections, first and last checked version that has it, keys.
"""

VERSIONS = (252, 257, 262)
DATA = """\
ACCESS|Service|252|262|NotifyAccess
ACTION|Unit|252|262|JobTimeoutAction SuccessAction
ACTION|Unit Service|252|262|FailureAction StartLimitAction
ARCHS|Service Socket Mount Swap|252|262|SystemCallArchitectures
BANDWIDTH|Service Socket Mount Swap Slice Scope|252|257|BlockIOReadBandwidth BlockIOWriteBandwidth
BOOLEAN|Mount|252|262|ForceUnmount LazyUnmount ReadWriteOnly SloppyOptions
BOOLEAN|Path|252|262|MakeDirectory
BOOLEAN|Service|252|262|GuessMainPID NonBlocking PermissionsStartOnly RemainAfterExit
 RootDirectoryStartOnly
BOOLEAN|Service Socket Mount Swap|252|262|CPUSchedulingResetOnFork DynamicUser IgnoreSIGPIPE
 LockPersonality MemoryDenyWriteExecute NoNewPrivileges PrivateDevices PrivateIPC PrivateMounts
 PrivateNetwork PrivateTmp PrivateUsers ProtectClock ProtectControlGroups ProtectHostname
 ProtectKernelLogs ProtectKernelModules ProtectKernelTunables RemoveIPC RestrictRealtime
 RestrictSUIDSGID SyslogLevelPrefix TTYReset TTYVHangup TTYVTDisallocate
BOOLEAN|Service Socket Mount Swap|257|262|RootEphemeral
BOOLEAN|Service Socket Mount Swap|262|262|CacheDirectoryAccounting LogsDirectoryAccounting
 StateDirectoryAccounting
BOOLEAN|Service Socket Mount Swap Scope|252|262|SendSIGHUP SendSIGKILL
BOOLEAN|Service Socket Mount Swap Slice Scope|252|257|BlockIOAccounting CPUAccounting
BOOLEAN|Service Socket Mount Swap Slice Scope|252|262|IOAccounting IPAccounting MemoryAccounting
 TasksAccounting
BOOLEAN|Service Socket Mount Swap Slice Scope|257|262|CoredumpReceive MemoryZSwapWriteback
BOOLEAN|Socket|252|262|Accept Broadcast FlushPending FreeBind KeepAlive NoDelay PassCredentials
 PassPacketInfo PassSecurity RemoveOnStop ReusePort SELinuxContextFromNet Transparent Writable
BOOLEAN|Socket|257|262|PassFileDescriptorsToExec
BOOLEAN|Socket|262|262|AcceptFileDescriptors PassPIDFD
BOOLEAN|Timer|252|262|FixedRandomDelay OnClockChange OnTimezoneChange Persistent RemainAfterElapse
 WakeSystem
BOOLEAN|Timer|257|262|DeferReactivation
BOOLEAN|Unit|252|262|AllowIsolate DefaultDependencies IgnoreOnIsolate OnFailureIsolate
 RefuseManualStart RefuseManualStop StopWhenUnneeded
BOOLEAN|Unit|257|262|SurviveFinalKillSignal
BOUNDINGSET|Service Socket Mount Swap|252|262|AmbientCapabilities CapabilityBoundingSet
BPF_DELEGATE_ATTACHMENTS|Service Socket Mount Swap|262|262|BPFDelegateAttachments
BPF_DELEGATE_COMMANDS|Service Socket Mount Swap|262|262|BPFDelegateCommands
BPF_DELEGATE_MAPS|Service Socket Mount Swap|262|262|BPFDelegateMaps
BPF_DELEGATE_PROGRAMS|Service Socket Mount Swap|262|262|BPFDelegatePrograms
CONDITION|Unit|252|262|AssertACPower AssertArchitecture AssertCPUFeature AssertCPUPressure
 AssertCPUs AssertCapability AssertControlGroupController AssertCredential AssertDirectoryNotEmpty
 AssertEnvironment AssertFileIsExecutable AssertFileNotEmpty AssertFirstBoot AssertGroup AssertHost
 AssertIOPressure AssertKernelCommandLine AssertKernelVersion AssertMemory AssertMemoryPressure
 AssertNeedsUpdate AssertOSRelease AssertPathExists AssertPathExistsGlob AssertPathIsDirectory
 AssertPathIsEncrypted AssertPathIsMountPoint AssertPathIsReadWrite AssertPathIsSymbolicLink
 AssertSecurity AssertUser AssertVirtualization ConditionACPower ConditionArchitecture
 ConditionCPUFeature ConditionCPUPressure ConditionCPUs ConditionCapability
 ConditionControlGroupController ConditionCredential ConditionDirectoryNotEmpty
 ConditionEnvironment ConditionFileIsExecutable ConditionFileNotEmpty ConditionFirmware
 ConditionFirstBoot ConditionGroup ConditionHost ConditionIOPressure ConditionKernelCommandLine
 ConditionKernelVersion ConditionMemory ConditionMemoryPressure ConditionNeedsUpdate
 ConditionOSRelease ConditionPathExists ConditionPathExistsGlob ConditionPathIsDirectory
 ConditionPathIsEncrypted ConditionPathIsMountPoint ConditionPathIsReadWrite
 ConditionPathIsSymbolicLink ConditionSecurity ConditionUser ConditionVirtualization
CONDITION|Unit|262|262|AssertFraction AssertKernelModuleLoaded AssertMachineTag AssertPathIsSocket
 AssertVersion ConditionFraction ConditionKernelModuleLoaded ConditionMachineTag
 ConditionPathIsSocket ConditionVersion
CPUAFFINITY|Service Socket Mount Swap|252|262|CPUAffinity
CPUSCHEDPOLICY|Service Socket Mount Swap|252|262|CPUSchedulingPolicy
CPUSCHEDPRIO|Service Socket Mount Swap|252|262|CPUSchedulingPriority
CPUWEIGHT|Service Socket Mount Swap Slice Scope|252|262|CPUWeight StartupCPUWeight
DEVICE|Service Socket Mount Swap Slice Scope|252|262|DeviceAllow
DEVICELATENCY|Service Socket Mount Swap Slice Scope|252|262|IODeviceLatencyTargetSec
DEVICEWEIGHT|Service Socket Mount Swap Slice Scope|252|257|BlockIODeviceWeight
DEVICEWEIGHT|Service Socket Mount Swap Slice Scope|252|262|IODeviceWeight
ENVIRON|Service Socket Mount Swap|252|262|Environment
ERRNO|Service Socket Mount Swap|252|262|SystemCallErrorNumber
FACILITY|Service Socket Mount Swap|252|262|SyslogFacility
FAMILIES|Service Socket Mount Swap|252|262|RestrictAddressFamilies
FILE|Service Socket Mount Swap|252|262|EnvironmentFile
FILESYSTEMS|Service Socket Mount Swap|252|262|RestrictFileSystems
INPUT|Service Socket Mount Swap|252|262|StandardInput
INTEGER|Socket|252|262|IPTTL Mark Priority
IOCLASS|Service Socket Mount Swap|252|262|IOSchedulingClass
IOPRIORITY|Service Socket Mount Swap|252|262|IOSchedulingPriority
KILLMODE|Service Socket Mount Swap Scope|252|262|KillMode
LABEL|Service Socket Mount Swap|252|262|SELinuxContext
LEVEL|Service Socket Mount Swap|252|262|LogLevelMax SyslogLevel
LIMIT|Service Socket Mount Swap|252|262|LimitAS LimitCORE LimitCPU LimitDATA LimitFSIZE LimitLOCKS
 LimitMEMLOCK LimitMSGQUEUE LimitNICE LimitNOFILE LimitNPROC LimitRSS LimitRTPRIO LimitRTTIME
 LimitSIGPENDING LimitSTACK
LIMIT|Service Socket Mount Swap Slice Scope|252|257|DefaultMemoryLow DefaultMemoryMin MemoryLimit
LIMIT|Service Socket Mount Swap Slice Scope|252|262|IOReadBandwidthMax IOReadIOPSMax
 IOWriteBandwidthMax IOWriteIOPSMax MemoryHigh MemoryLow MemoryMax MemoryMin MemorySwapMax
LIMIT|Service Socket Mount Swap Slice Scope|257|257|DefaultStartupMemoryLow
LIMIT|Service Socket Mount Swap Slice Scope|257|262|MemoryZSwapMax StartupMemoryHigh
 StartupMemoryLow StartupMemoryMax StartupMemorySwapMax StartupMemoryZSwapMax
LONG|Socket|252|262|MessageQueueMaxMessages MessageQueueMessageSize
MODE|Service Socket Mount Swap|252|262|CacheDirectoryMode ConfigurationDirectoryMode
 LogsDirectoryMode RuntimeDirectoryMode StateDirectoryMode UMask
MODE|Socket|252|262|SocketMode
MODE|Socket Mount Automount Path|252|262|DirectoryMode
MODE|Unit|252|262|OnFailureJobMode OnSuccessJobMode
MOUNTFLAG [...]|Service Socket Mount Swap|252|262|MountFlags
NAMESPACES|Service Socket Mount Swap|252|262|RestrictNamespaces
NAMESPACES|Service Socket Mount Swap|262|262|DelegateNamespaces
NANOSECONDS|Service Socket Mount Swap|252|262|TimerSlackNSec
NETWORKINTERFACE|Socket|252|262|BindToDevice
NICE|Service Socket Mount Swap|252|262|Nice
OOMSCOREADJUST|Service Socket Mount Swap|252|262|OOMScoreAdjust
OTHER|Automount|252|262|TimeoutIdleSec
OTHER|Install|252|262|Alias Also DefaultInstance RequiredBy WantedBy
OTHER|Install|257|262|UpheldBy
OTHER|Service|252|262|BusName PIDFile TimeoutAbortSec TimeoutStopSec
OTHER|Service|257|262|FileDescriptorStorePreserve OpenFile
OTHER|Service|262|262|LUOSession RefreshOnReload
OTHER|Service Scope|252|262|OOMPolicy
OTHER|Service Socket Mount Swap|252|262|AppArmorProfile CacheDirectory ConfigurationDirectory
 CoredumpFilter ExtensionImages Group KeyringMode LoadCredential LoadCredentialEncrypted
 LogExtraFields LogNamespace LogsDirectory MountAPIVFS MountImages NUMAMask NUMAPolicy
 PassEnvironment ProcSubset ProtectHome ProtectProc ProtectSystem RootHash RootHashSignature
 RootImageOptions RuntimeDirectory RuntimeDirectoryPreserve SetCredential SetCredentialEncrypted
 SmackProcessLabel StandardInputData StandardInputText StateDirectory SupplementaryGroups
 TTYColumns TTYRows TemporaryFileSystem UnsetEnvironment User UtmpMode WorkingDirectory
OTHER|Service Socket Mount Swap|257|262|BindLogSockets ExtensionImagePolicy ImportCredential
 MemoryKSM MountImagePolicy PrivatePIDs RootImagePolicy SetLoginEnvironment
OTHER|Service Socket Mount Swap|262|262|CacheDirectoryQuota LogsDirectoryQuota MemoryTHP PrivateBPF
 StateDirectoryQuota
OTHER|Service Socket Mount Swap Slice Scope|252|262|AllowedCPUs AllowedMemoryNodes BPFProgram
 CPUQuota CPUQuotaPeriodSec Delegate DisableControllers IPAddressAllow IPAddressDeny
 IPEgressFilterPath IPIngressFilterPath ManagedOOMMemoryPressure ManagedOOMMemoryPressureLimit
 ManagedOOMPreference ManagedOOMSwap RestrictNetworkInterfaces SocketBindAllow SocketBindDeny
 StartupAllowedCPUs StartupAllowedMemoryNodes TasksMax
OTHER|Service Socket Mount Swap Slice Scope|257|262|DelegateSubgroup
 ManagedOOMMemoryPressureDurationSec MemoryPressureWatch NFTSet
OTHER|Service Socket Mount Swap Slice Scope|262|262|BindNetworkInterface CPUPressureWatch
 CPUSetPartition IOPressureWatch OOMRules
OTHER|Slice|262|262|ActivatingConcurrencyMax ConcurrencyHardMax ConcurrencySoftMax
OTHER|Socket|252|262|FileDescriptorName SocketGroup SocketProtocol SocketUser Symlinks Timestamping
OTHER|Socket|262|262|DeferTrigger DeferTriggerMaxSec XAttrAccept XAttrEntryPoint XAttrListen
OTHER|Socket Mount Swap|252|262|TimeoutSec
OTHER|Swap|252|262|Priority
OTHER|Unit|252|262|CollectMode FailureActionExitStatus JobRunningTimeoutSec
 JobTimeoutRebootArgument JobTimeoutSec RebootArgument RequiresOverridable RequisiteOverridable
 SuccessActionExitStatus
OUTPUT|Service Socket Mount Swap|252|262|StandardError StandardOutput
PATH|Mount Automount|252|262|Where
PATH|Path|252|262|DirectoryNotEmpty PathChanged PathExists PathExistsGlob PathModified
PATH|Service|252|262|USBFunctionDescriptors USBFunctionStrings
PATH|Service Socket Mount Swap|252|262|ExecSearchPath IPCNamespacePath NetworkNamespacePath
 RootDirectory RootImage RootVerity TTYPath
PATH|Service Socket Mount Swap|262|262|RootMStack UserNamespacePath
PATH|Swap|252|262|What
PATH|Unit|252|262|SourcePath
PATH [...]|Service Socket Mount Swap|252|262|ExecPaths ExtensionDirectories InaccessibleDirectories
 InaccessiblePaths NoExecPaths ReadOnlyDirectories ReadOnlyPaths ReadWriteDirectories
 ReadWritePaths
PATH [...]|Unit|252|262|RequiresMountsFor
PATH [...]|Unit|257|262|WantsMountsFor
PATH [ARGUMENT [...]]|Service|252|262|ExecCondition ExecReload ExecStart ExecStop
PATH [ARGUMENT [...]]|Service|262|262|ExecReloadPost
PATH [ARGUMENT [...]]|Service Socket|252|262|ExecStartPost ExecStartPre ExecStopPost
PATH [ARGUMENT [...]]|Socket|252|262|ExecStopPre
PATH[:PATH[:OPTIONS]] [...]|Service Socket Mount Swap|252|262|BindPaths BindReadOnlyPaths
PERSONALITY|Service Socket Mount Swap|252|262|Personality
POLICY|Service Socket Mount Swap Slice Scope|252|262|DevicePolicy
REGEX|Service Socket Mount Swap|257|262|LogFilterPatterns
SECONDS|Scope|252|262|TimeoutStopSec
SECONDS|Service|252|262|RestartSec TimeoutSec TimeoutStartSec WatchdogSec
SECONDS|Service|257|262|RestartMaxDelaySec
SECONDS|Service|262|262|RestartRandomizedDelaySec
SECONDS|Service Scope|252|262|RuntimeMaxSec RuntimeRandomizedExtraSec
SECONDS|Service Socket Mount Swap|252|262|LogRateLimitIntervalSec TimeoutCleanSec
SECONDS|Service Socket Mount Swap Slice Scope|257|262|MemoryPressureThresholdSec
SECONDS|Service Socket Mount Swap Slice Scope|262|262|CPUPressureThresholdSec
 IOPressureThresholdSec
SECONDS|Socket|252|262|DeferAcceptSec KeepAliveIntervalSec KeepAliveTimeSec
SECONDS|Socket|257|262|PollLimitIntervalSec
SECONDS|Socket Path|252|262|TriggerLimitIntervalSec
SECONDS|Timer|252|262|AccuracySec RandomizedDelaySec
SECONDS|Timer|262|262|RandomizedOffsetSec
SECONDS|Unit|252|262|StartLimitIntervalSec
SECONDS|Unit Service|252|262|StartLimitInterval
SECUREBITS|Service Socket Mount Swap|252|262|SecureBits
SERVICE|Socket|252|262|Service
SERVICEEXITTYPE|Service|252|262|ExitType
SERVICERESTART|Service|252|262|Restart
SERVICERESTARTMODE|Service|257|262|RestartMode
SERVICETYPE|Service|252|262|Type
SHARES|Service Socket Mount Swap Slice Scope|252|257|CPUShares StartupCPUShares
SIGNAL|Service|257|262|ReloadSignal
SIGNAL|Service Socket Mount Swap Scope|252|262|FinalKillSignal KillSignal RestartKillSignal
 WatchdogSignal
SIZE|Socket|252|262|PipeSize ReceiveBuffer SendBuffer
SLICE|Service Socket Mount Swap Slice Scope|252|262|Slice
SOCKET [...]|Socket|252|262|ListenDatagram ListenFIFO ListenMessageQueue ListenNetlink
 ListenSequentialPacket ListenSpecial ListenStream ListenUSBFunction
SOCKETBIND|Socket|252|262|BindIPv6Only
SOCKETS|Service|252|262|Sockets
STATUS|Service|252|262|RestartForceExitStatus RestartPreventExitStatus SuccessExitStatus
STRING|Automount|252|262|ExtraOptions
STRING|Mount|252|262|Type What
STRING|Mount Swap|252|262|Options
STRING|Service|252|262|RebootArgument
STRING|Service Socket Mount Swap|252|262|PAMName SyslogIdentifier UtmpIdentifier
STRING|Socket|252|262|SmackLabel SmackLabelIPIn SmackLabelIPOut TCPCongestion
STRING|Unit|252|262|Description
SYSCALLS|Service Socket Mount Swap|252|262|SystemCallFilter SystemCallLog
TIMEOUTMODE|Service|252|262|TimeoutStartFailureMode TimeoutStopFailureMode
TIMER|Timer|252|262|OnActiveSec OnBootSec OnCalendar OnStartupSec OnUnitActiveSec OnUnitInactiveSec
TOS|Socket|252|262|IPTOS
UNIT|Timer Path|252|262|Unit
UNIT [...]|Unit|252|262|After Before BindTo BindsTo Conflicts JoinsNamespaceOf OnFailure OnSuccess
 PartOf PropagateReloadFrom PropagateReloadTo PropagatesReloadTo PropagatesStopTo
 ReloadPropagatedFrom Requires Requisite StopPropagatedFrom Upholds Wants
UNSIGNED|Service|252|262|FileDescriptorStoreMax
UNSIGNED|Service|257|262|RestartSteps
UNSIGNED|Service Socket Mount Swap|252|262|LogRateLimitBurst
UNSIGNED|Socket|252|262|Backlog KeepAliveProbes MaxConnections MaxConnectionsPerSource
UNSIGNED|Socket|257|262|PollLimitBurst
UNSIGNED|Socket Path|252|262|TriggerLimitBurst
UNSIGNED|Unit Service|252|262|StartLimitBurst
URL|Unit|252|262|Documentation
WEIGHT|Service Socket Mount Swap Slice Scope|252|257|BlockIOWeight StartupBlockIOWeight
WEIGHT|Service Socket Mount Swap Slice Scope|252|262|IOWeight StartupIOWeight
"""
