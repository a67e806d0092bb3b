package bed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authority signs, as the root of the fleet's trust or as one cluster's own.
type authority struct {
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
}

// newRoot makes a root that signs itself.
func newRoot() (authority, error) {
	return authority{}.sign("Root CA", 1)
}

// sign makes an authority below a, or one that signs itself if a is empty.
func (a authority) sign(name string, serial int64) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{Organization: []string{"Portolan"}, CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), signer)
	if err != nil {
		return authority{}, err
	}
	cert, err = x509.ParseCertificate(der)
	return authority{cert: cert, der: der, key: key}, err
}

func (a authority) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.der})
}

// writeCacerts writes what istiod calls plugged-in CA certificates.
func (a authority) writeCacerts(dir string, root authority) error {
	key, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for name, text := range map[string][]byte{
		"ca-key.pem":     pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
		"ca-cert.pem":    a.certPEM(),
		"cert-chain.pem": append(a.certPEM(), root.certPEM()...),
		"root-cert.pem":  root.certPEM(),
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return errors.Join(errs...)
}
