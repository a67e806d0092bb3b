package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/pkg/cli/member"
	"github.com/portolan-mesh/portolan/pkg/fleet"
)

// How long a token may take to appear and to be let in. Both are up to
// controllers and caches of the member.
const (
	tokenTimeout = 30 * time.Second
	proofTimeout = 15 * time.Second
	pollInterval = 200 * time.Millisecond
)

// credential is a token of the member's ServiceAccount.
type credential struct {
	token string
	// expires is zero for a token that does not.
	expires time.Time
}

// grant creates what the member needs, or brings it up to date.
func (d *addition) grant(ctx context.Context) error {
	d.say("Granting access in cluster %s", d.name)
	for _, o := range member.Objects(d.memberOptions()) {
		if _, ok := o.(*corev1.Namespace); ok {
			exists, err := d.member.has(ctx, o.GetName())
			if err != nil {
				return d.member.fail(describe(o), err)
			}
			if exists {
				continue
			}
		}
		if err := d.member.apply(ctx, o); err != nil {
			return d.member.fail(describe(o), err)
		}
	}
	return nil
}

// token returns the ServiceAccount's token, waiting for one that does not expire.
func (d *addition) token(ctx context.Context) (credential, error) {
	if d.options.tokenTTL > 0 {
		return d.requestToken(ctx)
	}
	key := client.ObjectKey{Namespace: d.config.Clusters.Namespace, Name: member.TokenName}
	var cred credential
	err := wait.PollUntilContextTimeout(ctx, pollInterval, tokenTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		cred, err = d.keptToken(ctx)
		return cred.token != "", err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return credential{}, &Error{
			Cause: "no token appeared in the Secret: the token controller of the cluster does not answer", Object: "Secret " + key.String(),
			Cluster: d.name, Next: "ask for a token that expires: --token-ttl 8760h", Err: fmt.Errorf("%w: %w", ErrTimeout, err),
		}
	}
	return cred, d.member.fail("Secret "+key.String(), err)
}

// keptToken is the token of the Secret in the member, empty where there is none yet.
func (d *addition) keptToken(ctx context.Context) (credential, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: d.config.Clusters.Namespace, Name: member.TokenName}
	err := d.member.Get(ctx, key, &secret)
	return credential{token: string(secret.Data[corev1.ServiceAccountTokenKey])}, client.IgnoreNotFound(err)
}

// requestToken asks for a token that expires; the API server may shorten its life.
func (d *addition) requestToken(ctx context.Context) (credential, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: d.config.Clusters.Namespace, Name: member.Name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(d.options.tokenTTL.Seconds())),
	}}
	if err := d.member.SubResource("token").Create(ctx, account, request); err != nil {
		return credential{}, d.member.fail("ServiceAccount "+account.Namespace+"/"+account.Name, err)
	}
	return credential{token: request.Status.Token, expires: request.Status.ExpirationTimestamp.Time}, nil
}

// kubeconfig is what is saved for the hub. It holds nothing of the person's
// own credentials, and no path, program or proxy of this machine.
func (d *addition) kubeconfig(token string) ([]byte, error) {
	tls := rest.CopyConfig(d.member.config)
	if err := rest.LoadTLSFiles(tls); err != nil {
		return nil, d.member.fail(describeContext(d.member.context), err)
	}
	if tls.Insecure {
		return nil, d.fail("the kubeconfig skips the verification of the API server's certificate, and the hub must not",
			"kubectl config set-cluster CLUSTER --embed-certs --certificate-authority FILE")
	}
	c := clientcmdapi.NewConfig()
	c.Clusters[d.name] = &clientcmdapi.Cluster{Server: d.server, CertificateAuthorityData: tls.CAData, TLSServerName: tls.ServerName}
	c.AuthInfos[member.Name] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts[d.name] = &clientcmdapi.Context{Cluster: d.name, AuthInfo: member.Name}
	c.CurrentContext = d.name
	return clientcmd.Write(*c)
}

// prove holds that the hub can work with what will be saved: the manager's own
// reading of the kubeconfig, the address in it, the rights of its token.
func (d *addition) prove(ctx context.Context, cred credential) error {
	d.say("Proving the new credentials at %s", d.server)
	raw, err := d.kubeconfig(cred.token)
	if err != nil {
		return err
	}
	config, err := fleet.ParseKubeconfig(raw, fleet.Allow{})
	if err != nil {
		return d.fail(err.Error(), "correct the cluster's entry in the kubeconfig")
	}
	if d.options.skipProbe {
		d.say("  address      not asked from here: %s cluster list will say whether the hub reaches it", d.program())
		config.Host = d.member.config.Host
	}
	c, err := open(d.name, d.member.context, config)
	if err != nil {
		return err
	}
	if _, err := c.version(ctx); err != nil {
		return d.unproved(c, err)
	}
	return d.proveAccess(ctx, c)
}

// unproved is the error of an address at which the new credentials do not work.
func (d *addition) unproved(c *connection, err error) error {
	failed := c.fail("ServiceAccount "+d.config.Clusters.Namespace+"/"+member.Name, err)
	if e, ok := errors.AsType[*Error](failed); ok && d.options.server != "" && unreachable(err) && !untrusted(err) {
		e.Next = "correct --server, or add --skip-probe where only the hub can reach it"
	}
	return failed
}

// proveAccess waits until the rights that were granted are in force.
func (d *addition) proveAccess(ctx context.Context, c *connection) error {
	need := d.requires()
	missing := need
	err := wait.PollUntilContextTimeout(ctx, pollInterval, proofTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = c.missing(ctx, missing)
		return len(missing) == 0, err
	})
	account := "ServiceAccount " + d.config.Clusters.Namespace + "/" + member.Name
	if wait.Interrupted(err) && ctx.Err() == nil {
		return &Error{Cause: "the new credentials lack: " + list(missing), Object: account, Cluster: d.name, Next: "look for what takes these rights away, such as an authorization webhook", Err: err}
	}
	if err != nil {
		return c.fail(account, err)
	}
	d.say("  permissions  %d of %d", len(need), len(need))
	reads, err := c.may(ctx, fleet.Access{Verb: "list", Resource: "secrets"})
	if err == nil && reads {
		d.say("warning: another binding lets %s read Secrets in cluster %s; it needs none", account, d.name)
	}
	return c.fail(account, err)
}
