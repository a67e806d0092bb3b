package fleet

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// expiry is when the credentials of cfg end, as far as they say so themselves:
// a bearer token that is a JWT, or a client certificate. Nothing is verified,
// since nothing but a warning depends on it.
func expiry(cfg *rest.Config) time.Time {
	if cfg.BearerToken != "" {
		return tokenExpiry(cfg.BearerToken)
	}
	block, _ := pem.Decode(cfg.CertData)
	if block == nil {
		return time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter
}

// tokenExpiry is the exp claim of a JWT.
func tokenExpiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.Exp, 0)
}
