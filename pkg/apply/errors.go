package apply

import "errors"

// Why an op waits. Nothing needs to be retried: OnChange, or the cluster's own
// state, tells when it makes sense to plan again.
var (
	// ErrFrozen is for ops while nothing may be written.
	ErrFrozen = errors.New("writes are frozen")
	// ErrTripped is for ops to a cluster that did not answer the last ones.
	ErrTripped = errors.New("the cluster does not answer writes and is left alone for a while")
	// ErrCrowded is for ops to a cluster that takes as many writes as it may already.
	ErrCrowded = errors.New("the cluster has as many writes under way as it may")
	// ErrHeldBack is for deletes that come after something which is not done.
	ErrHeldBack = errors.New("nothing is taken away before what replaces it is in place")
	// ErrDeletesHalted is for deletes beyond the cap of a cluster.
	ErrDeletesHalted = errors.New("the plan deletes more than the cap allows: deletes are halted until they are allowed")
	// ErrStopped is for ops whose context ended.
	ErrStopped = errors.New("the process is stopping")
)

// Why an op failed. Whoever asked tries again, later each time.
var (
	// ErrNotOurs is for an object of the same name that someone else made.
	ErrNotOurs = errors.New("an object of that name exists and is not ours")
	// ErrChanged is for a delete of what changed in the meantime.
	ErrChanged = errors.New("the object changed in the meantime")
	// ErrNamespaceMissing is for an object whose namespace does not exist.
	ErrNamespaceMissing = errors.New("the namespace does not exist")
	// ErrNamespaceDenied is for a sync namespace that we may not create.
	ErrNamespaceDenied = errors.New("the namespace does not exist and the credentials do not allow: create namespaces")
	// ErrNamespaceEnding is for an object whose namespace is being deleted.
	ErrNamespaceEnding = errors.New("the namespace is being deleted")
	// ErrKindMissing is for a kind that the cluster does not serve.
	ErrKindMissing = errors.New("the cluster does not serve the kind")
	// ErrForbidden is for a write that the credentials do not allow.
	ErrForbidden = errors.New("the credentials do not allow it")
	// ErrUnauthorized is for credentials that the cluster refuses.
	ErrUnauthorized = errors.New("the cluster refuses the credentials")
	// ErrInvalid is for an object that the API server refuses.
	ErrInvalid = errors.New("the API server refuses the object")
	// ErrWebhook is for an object that an admission webhook refuses.
	ErrWebhook = errors.New("an admission webhook refuses the object")
	// ErrBusy is for an API server that asks for fewer requests.
	ErrBusy = errors.New("the API server asks for fewer requests")
	// ErrTimeout is for a request that was not answered in time.
	ErrTimeout = errors.New("the API server does not answer in time")
	// ErrUnreachable is for a request that could not be sent or answered.
	ErrUnreachable = errors.New("the API server cannot be reached")
	// ErrServer is for an API server with an error of its own.
	ErrServer = errors.New("the API server answers with an error of its own")
)

// waitError is why the client of a cluster cannot be had.
type waitError struct{ error }

// Unwrap lets errors.Is see the cause.
func (e waitError) Unwrap() error { return e.error }

// waits is whether an op with err waits for something, rather than having failed.
func waits(err error) bool {
	var w waitError
	for _, reason := range []error{ErrFrozen, ErrTripped, ErrCrowded, ErrHeldBack, ErrDeletesHalted, ErrStopped} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return errors.As(err, &w)
}
