package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
)

// problemOf says in stable words what went wrong between us and an API server.
// It takes nothing from the text of err: an address, an echoed header or
// whatever else a server answers must not reach a status.
func problemOf(err error) Problem {
	var invalid KubeconfigError
	switch {
	case errors.As(err, &invalid):
		return Problem{v1alpha1.ReasonKubeconfigInvalid, "The kubeconfig cannot be used: " + invalid.Error()}
	case errors.Is(err, errDuplicate):
		return Problem{v1alpha1.ReasonDuplicateCluster, "Another name has the same cluster: remove one of them"}
	case errors.Is(err, errOther):
		return Problem{v1alpha1.ReasonUnreachable, "Another cluster answers at the address: the UID of its kube-system namespace differs; what was seen before is kept until the kubeconfig changes"}
	case apierrors.IsUnauthorized(err):
		return Problem{v1alpha1.ReasonUnauthorized, "The API server refuses the credentials: renew them in the Secret"}
	case apierrors.IsForbidden(err):
		return Problem{v1alpha1.ReasonPermissionMissing, "The API server forbids a request that is needed"}
	}
	return Problem{v1alpha1.ReasonUnreachable, unreachable(err)}
}

// unreachable is how an API server fails to answer.
func unreachable(err error) string {
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		expired   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		status    apierrors.APIStatus
		request   *url.Error
	)
	switch {
	case errors.As(err, &dns):
		return "The name of the API server cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The API server refuses connections"
	case errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &expired):
		return "The certificate of the API server is not one that the kubeconfig trusts"
	case errors.As(err, &record):
		return "The API server does not speak TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "The API server does not answer in time"
	case errors.Is(err, errNotKubernetes):
		return "What answers is not a Kubernetes API server"
	case errors.As(err, &status) && status.Status().Code >= 500:
		return "The API server answers with errors of its own"
	case errors.As(err, &status):
		return "The API server refuses a request that is needed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "The API server closes connections"
	case errors.As(err, &request):
		return "The API server cannot be reached"
	}
	return "What answers is not a Kubernetes API server"
}

// isTimeout is whether err says of itself that it is a time-out.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
