package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// fail says what err means for whoever asked for object, and what to do next.
// What clients of Kubernetes return holds no credentials, only addresses and names.
func (c *connection) fail(object string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &Error{Cause: err.Error(), Object: object, Cluster: c.name, Err: err}
	switch {
	case apierrors.IsUnauthorized(err):
		e.Cause = "the API server refuses the credentials of " + describeContext(c.context)
		e.Next = "log in again, then try: " + c.kubectl("auth whoami")
	case apierrors.IsForbidden(err):
		e.Next = "ask the cluster's administrator for this permission, then run the command again"
	case meta.IsNoMatchError(err):
		e.Cause = "Portolan is not installed here: " + err.Error()
		e.Next = c.kubectl("apply -k config/crd")
	case untrusted(err):
		e.Cause = "the certificate of " + c.config.Host + " is not trusted: " + root(err)
		e.Next = "state the server's certificate-authority-data and tls-server-name in the kubeconfig"
	case unreachable(err):
		e.Cause = "the API server " + c.config.Host + " does not answer: " + root(err)
		e.Next = c.kubectl("get --raw /version")
	case errors.Is(err, errNotKubernetes):
		e.Cause = c.config.Host + ": " + err.Error()
		e.Next = "correct the server's address in the kubeconfig"
	}
	return e
}

// kubectl is a command for the connection's cluster.
func (c *connection) kubectl(args string) string {
	if c.context == "" {
		return "kubectl " + args
	}
	return "kubectl --context " + c.context + " " + args
}

func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

func unreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}

// root is err without the method and URL that net/http puts before it.
func root(err error) string {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}
