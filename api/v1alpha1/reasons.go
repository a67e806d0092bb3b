package v1alpha1

// Condition types of the policy kinds.
const (
	// ConditionAccepted says whether Portolan uses the object.
	ConditionAccepted = "Accepted"
	// ConditionProgrammed says whether every client cluster holds the plan.
	ConditionProgrammed = "Programmed"
	// ConditionConflict says whether something else claims the same.
	ConditionConflict = "Conflict"
	// ConditionDegraded says whether the plan does less than the object asks for.
	ConditionDegraded = "Degraded"
)

// Condition types of MeshCluster.
const (
	// ConditionConnected says whether the API server answers.
	ConditionConnected = "Connected"
	// ConditionAuthorized says whether the credentials may do all that is needed.
	ConditionAuthorized = "Authorized"
	// ConditionSynced says whether every object of the cluster has been seen.
	ConditionSynced = "Synced"
	// ConditionReady says whether all of the above hold and nothing is halted.
	ConditionReady = "Ready"
)

// Reasons of conditions.
const (
	// ReasonAccepted is that of Accepted=True.
	ReasonAccepted = "Accepted"
	// ReasonNoConflict is that of Conflict=False.
	ReasonNoConflict = "NoConflict"
	// ReasonAsPlanned is that of Degraded=False.
	ReasonAsPlanned = "AsPlanned"
	// ReasonApplied is that of Programmed=True.
	ReasonApplied = "Applied"
	// ReasonApplyFailed says that a cluster refused a write.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonClusterNotSynced says that a cluster has not been seen as a whole yet.
	ReasonClusterNotSynced = "ClusterNotSynced"
	// ReasonNotAccepted says that nothing is written for an object that is not accepted.
	ReasonNotAccepted = "NotAccepted"
	// ReasonPending says that no plan has been made yet.
	ReasonPending = "Pending"
)

// Reasons of MeshCluster conditions.
const (
	// ReasonConnected is that of Connected=True.
	ReasonConnected = "Connected"
	// ReasonKubeconfigInvalid says that the kubeconfig cannot be used.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigMissing says that no Secret holds a kubeconfig for the cluster.
	ReasonKubeconfigMissing = "KubeconfigMissing"
	// ReasonDuplicateKubeconfig says that two Secrets name the cluster.
	ReasonDuplicateKubeconfig = "DuplicateKubeconfig"
	// ReasonDuplicateCluster says that two names are one and the same cluster.
	ReasonDuplicateCluster = "DuplicateCluster"
	// ReasonUnreachable says that the API server does not answer.
	ReasonUnreachable = "ControlUnreachable"
	// ReasonUnauthorized says that the API server refuses the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonPermissionMissing says that the credentials may not do all that is needed.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonAuthorized is that of Authorized=True.
	ReasonAuthorized = "Authorized"
	// ReasonSyncing says that the first lists are on their way.
	ReasonSyncing = "Syncing"
	// ReasonSynced is that of Synced=True.
	ReasonSynced = "Synced"
	// ReasonReady is that of Ready=True.
	ReasonReady = "Ready"
	// ReasonRemoving says that the cluster is on its way out.
	ReasonRemoving = "Removing"
	// ReasonDeletesHalted says that a plan wanted more deletes than the cap allows.
	ReasonDeletesHalted = "DeletesHalted"
	// ReasonIstioMissing says that the cluster does not serve Istio's kinds.
	ReasonIstioMissing = "IstioMissing"
)

// Reasons of findings. docs/findings.md has an entry for each.
const (
	// ReasonIdentityInvalid says that a label or annotation is no valid identity or env.
	ReasonIdentityInvalid = "IdentityInvalid"
	// ReasonIdentityClaimed says that another namespace owns the identity.
	ReasonIdentityClaimed = "IdentityClaimed"
	// ReasonIdentityNotGranted says that no WorkloadIdentity in the hub grants the claim.
	ReasonIdentityNotGranted = "IdentityNotGranted"
	// ReasonNotOwner says that an object in a member speaks for an identity that its namespace does not serve or run.
	ReasonNotOwner = "NotOwner"
	// ReasonHostNotAllowed says that an alias is under no allowed suffix.
	ReasonHostNotAllowed = "HostNotAllowed"
	// ReasonHostClaimed says that an older object claims the host.
	ReasonHostClaimed = "HostClaimed"
	// ReasonHostNotOfTarget says that a RoutingPolicy or RateLimitPolicy names a host that its target does not have.
	ReasonHostNotOfTarget = "HostNotOfTarget"
	// ReasonPolicyInvalid says that a policy came past the checks of an API server and cannot be used.
	ReasonPolicyInvalid = "PolicyInvalid"
	// ReasonPolicyOverridden says that an older object has the same target.
	ReasonPolicyOverridden = "PolicyOverridden"
	// ReasonNotFleetDefault says that a policy targets every identity and is not the fleet default.
	ReasonNotFleetDefault = "NotFleetDefault"
	// ReasonNotOurs says that an object that is not Portolan's has the name or host of a planned one.
	ReasonNotOurs = "NotOurs"
	// ReasonNoService says that no Service selects the pods of a workload.
	ReasonNoService = "NoService"
	// ReasonNoPort says that a Service has no port that a mesh can carry.
	ReasonNoPort = "NoPort"
	// ReasonPortMismatch says that clusters disagree about a port.
	ReasonPortMismatch = "PortMismatch"
	// ReasonProtocolUnknown says that neither appProtocol nor the name of a port says what it speaks.
	ReasonProtocolUnknown = "ProtocolUnknown"
	// ReasonNoGateway says that other clusters cannot reach a serving cluster.
	ReasonNoGateway = "NoGateway"
	// ReasonManyGatewayAddresses says that a cluster is more than one endpoint.
	ReasonManyGatewayAddresses = "ManyGatewayAddresses"
	// ReasonEgressPending says that clients reach a cluster by its gateway while its egress is not available.
	ReasonEgressPending = "EgressPending"
	// ReasonHeadless says that a cluster is one endpoint a pod, since its Service is headless.
	ReasonHeadless = "HeadlessService"
	// ReasonLocalityUnknown says that a cluster's region is not known.
	ReasonLocalityUnknown = "LocalityUnknown"
	// ReasonNoInstance says that nothing serves a destination.
	ReasonNoInstance = "NoInstance"
	// ReasonNoClient says that no workload of a source runs anywhere.
	ReasonNoClient = "NoClient"
	// ReasonUnavailable says that a service has no available replica anywhere.
	ReasonUnavailable = "Unavailable"
	// ReasonFailoverBudget says that one request cannot reach the last cluster.
	ReasonFailoverBudget = "FailoverBudget"
	// ReasonPlaceUnknown says that a policy names a cluster or region that does not serve the target.
	ReasonPlaceUnknown = "PlaceUnknown"
	// ReasonSubsetUnserved says that requests for a subset go to the service itself, or that a cluster serves none of it.
	ReasonSubsetUnserved = "SubsetUnserved"
	// ReasonRouteUnreachable says that a route never matches.
	ReasonRouteUnreachable = "RouteUnreachable"
	// ReasonMixedLocations says that addresses outside the mesh and instances inside serve one host.
	ReasonMixedLocations = "MixedLocations"
	// ReasonHTTPOnly says that a setting has no effect on a service without an HTTP port.
	ReasonHTTPOnly = "HTTPOnly"
	// ReasonShardUnknown says that a RoutingPolicy names a host that is none of the mesh.
	ReasonShardUnknown = "ShardUnknown"
	// ReasonShardUnreachable says that clients of some clusters cannot call a shard.
	ReasonShardUnreachable = "ShardUnreachable"
	// ReasonLookupUnreachable says that clients of some clusters cannot call the lookup service.
	ReasonLookupUnreachable = "LookupUnreachable"
	// ReasonTableInvalid says that a ShardMap came past the checks of an API server and cannot be used.
	ReasonTableInvalid = "TableInvalid"
	// ReasonKeyClaimed says that an older ShardMap gives keys of the same table to other shards.
	ReasonKeyClaimed = "KeyClaimed"
	// ReasonValueRepeated says that a value of a rate limit cannot be told from another.
	ReasonValueRepeated = "ValueRepeated"
	// ReasonKindsMissing says that a member does not serve some of our kinds.
	ReasonKindsMissing = "KindsMissing"
	// ReasonIstioTooOld says that a member's Istio does not take a field of a planned object.
	ReasonIstioTooOld = "IstioTooOld"
	// ReasonWaitingForCluster says that a plan is kept as it was until a cluster has been seen.
	ReasonWaitingForCluster = "WaitingForCluster"
)
