package bed

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
)

// TestTrust signs two intermediates that one root is behind, reads the root back
// from what a bed keeps, and holds that key and certificate of each go together.
func TestTrust(t *testing.T) {
	t.Parallel()
	b := &Bed{Dir: t.TempDir()}
	root, err := b.root()
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.root()
	if err != nil {
		t.Fatal(err)
	}
	if !root.cert.Equal(again.cert) || !root.key.Equal(again.key) {
		t.Error("a bed has another root the second time")
	}
	roots := x509.NewCertPool()
	roots.AddCert(root.cert)
	for _, name := range []string{"east", "west"} {
		own, err := again.sign(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.cert.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		files, err := own.cacerts(root)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tls.X509KeyPair(files["cert-chain.pem"], files["ca-key.pem"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
