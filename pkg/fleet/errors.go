package fleet

import "errors"

// KubeconfigError says why a kubeconfig is refused. It holds no part of it.
type KubeconfigError string

// Error implements error.
func (e KubeconfigError) Error() string { return string(e) }

// The reasons to refuse a kubeconfig. Each names the field and the remedy.
const (
	// ErrEmpty is for a kubeconfig without content.
	ErrEmpty KubeconfigError = "the kubeconfig is empty"
	// ErrTooLarge is for one of more than MaxKubeconfig bytes.
	ErrTooLarge KubeconfigError = "the kubeconfig is larger than 256 KiB"
	// ErrMalformed is for one that is no YAML or JSON of kind Config.
	ErrMalformed KubeconfigError = "the kubeconfig is no YAML or JSON document of kind Config"
	// ErrContext is for one whose current-context leads to no cluster and user.
	ErrContext KubeconfigError = "current-context must name a context whose cluster and user are in the kubeconfig"
	// ErrServer is for a server that is no URL of an API server.
	ErrServer KubeconfigError = "cluster.server must be an https URL without user, query or fragment"
	// ErrProxy is for a proxy-url that cannot be used.
	ErrProxy KubeconfigError = "cluster.proxy-url must be an http, https or socks5 URL"
	// ErrInsecure is for one that turns verification of the API server off.
	ErrInsecure KubeconfigError = "insecure-skip-tls-verify and http servers are refused: state certificate-authority-data, or allow it by clusters.allow.insecure"
	// ErrExec is for one that wants a program to be run.
	ErrExec KubeconfigError = "user.exec and user.auth-provider are refused: use a token or client-certificate-data, or allow them by clusters.allow.exec"
	// ErrFiles is for one that names files.
	ErrFiles KubeconfigError = "paths of files are refused: use the fields that end in -data and token, or allow them by clusters.allow.files"
	// ErrAuthority is for a CA that cannot be read.
	ErrAuthority KubeconfigError = "cluster.certificate-authority-data holds no PEM certificate"
	// ErrCertificate is for a client certificate that cannot be used.
	ErrCertificate KubeconfigError = "user.client-certificate-data and client-key-data must be a PEM certificate and its key"
	// ErrToken is for a token that no header can carry.
	ErrToken KubeconfigError = "user.token must be one line of printable characters"
	// ErrCredentials is for one that says nothing of who we are.
	ErrCredentials KubeconfigError = "the user has neither a token nor a client certificate"
)

var (
	// ErrUnknown is for a cluster that was not engaged.
	ErrUnknown = errors.New("the cluster is not engaged")
	// ErrNotWritable is for a cluster that is not connected, not synced or refused.
	ErrNotWritable = errors.New("the cluster cannot be written to now")
	// ErrClosed is for a request on a connection that was closed or replaced.
	ErrClosed = errors.New("the connection is closed")

	// errOther says that the API server is not that of the cluster which was engaged.
	errOther = errors.New("the kube-system namespace has another UID than before")
	// errDuplicate says that another name has the same cluster.
	errDuplicate = errors.New("another name has the same cluster")
	// errNotKubernetes says that an answer is not what the API promises.
	errNotKubernetes = errors.New("the answer is not that of a Kubernetes API server")
	// errEmptyOnce says that a list is empty which was not before: it has to be said twice.
	errEmptyOnce = errors.New("an empty list needs confirmation")
)
