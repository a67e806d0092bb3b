package bed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authority signs, as the root of the fleet's trust or as one cluster's own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// root is that of the fleet's trust, which the bed keeps.
func (b *Bed) root() (authority, error) {
	path := filepath.Join(b.Dir, "root.pem")
	text, err := os.ReadFile(path)
	if err == nil {
		return parse(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return authority{}, err
	}
	a, err := authority{}.sign("Root CA")
	if err != nil {
		return a, err
	}
	key, err := a.keyPEM()
	if err != nil {
		return a, err
	}
	return a, os.WriteFile(path, append(key, a.certPEM()...), 0o600)
}

// parse reads a key and the certificate behind it.
func parse(text []byte) (authority, error) {
	first, rest := pem.Decode(text)
	second, _ := pem.Decode(rest)
	if first == nil || second == nil {
		return authority{}, errors.New("root.pem holds no key and no certificate: remove it")
	}
	key, err := x509.ParseECPrivateKey(first.Bytes)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(second.Bytes)
	return authority{cert: cert, key: key}, err
}

// sign makes an authority below a, or one that signs itself if a is empty.
func (a authority) sign(name string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return authority{}, err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"Portolan"}, CommonName: name},
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
	return authority{cert: cert, key: key}, err
}

func (a authority) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a authority) keyPEM() ([]byte, error) {
	key, err := x509.MarshalECPrivateKey(a.key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}), err
}

// cacerts is what istiod calls plugged-in CA certificates.
func (a authority) cacerts(root authority) (map[string][]byte, error) {
	key, err := a.keyPEM()
	return map[string][]byte{
		"ca-key.pem": key, "ca-cert.pem": a.certPEM(), "cert-chain.pem": append(a.certPEM(), root.certPEM()...), "root-cert.pem": root.certPEM(),
	}, err
}
