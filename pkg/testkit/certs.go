package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// secrets are the files that a server proves itself and its users with.
type secrets struct {
	// ca signed the serving certificate.
	ca, cert, key string
	// accounts is the key that signs ServiceAccount tokens.
	accounts string
	// tokens is the file of static tokens; admin is one of them.
	tokens, admin string
}

// newSecrets finds the files in dir, or writes them there.
func newSecrets(dir string) (secrets, error) {
	in := func(name string) string { return filepath.Join(dir, name) }
	s := secrets{ca: in("ca.crt"), cert: in("server.crt"), key: in("server.key"),
		accounts: in("accounts.key"), tokens: in("tokens.csv")}
	admin, err := os.ReadFile(in("admin.token"))
	if err == nil {
		s.admin = string(admin)
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return s, err
	}
	s.admin = hex.EncodeToString(token)
	return s, errors.Join(
		s.writeServing(),
		newKey(s.accounts),
		os.WriteFile(s.tokens, []byte(s.admin+",admin,admin,system:masters\n"), 0o600),
		os.WriteFile(in("admin.token"), []byte(s.admin), 0o600),
	)
}

// writeServing makes a CA, whose key is thrown away, and a certificate for the loopback addresses.
func (s secrets) writeServing() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "portolan-testkit"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	cert, err := x509.CreateCertificate(rand.Reader, serving, authority, key.Public(), caKey)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(s.ca, "CERTIFICATE", ca), writePEM(s.cert, "CERTIFICATE", cert), writeKey(s.key, key))
}

func newKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(path, key)
}

// writeKey writes the one form that kube-apiserver takes for ServiceAccount keys.
func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
