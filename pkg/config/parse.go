package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxSize bounds a file before anything is made of it.
const maxSize = 1 << 20

// ErrInvalid is wrapped by every error that the content of a file causes.
var ErrInvalid = errors.New("invalid manager configuration")

// Load reads and checks the configuration at path.
func Load(path string) (Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read manager configuration: %w", err)
	}
	c, err := Parse(raw)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads and checks a configuration in YAML or JSON. An unknown or
// repeated field is an error; the error names every mistake, not just the first.
func Parse(raw []byte) (Config, error) {
	doc, err := single(raw)
	if err != nil {
		return Config{}, invalid(err)
	}
	c := Default()
	// A map would be merged with the default one key by key.
	c.Gateway.Labels = nil
	c.APIVersion, c.Kind = "", ""
	unknown, err := kjson.UnmarshalStrict(doc, &c)
	if err != nil {
		return Config{}, invalid(typeError(err))
	}
	c.fill()
	if errs := slices.Concat(unknown, c.validate()); len(errs) > 0 {
		return Config{}, invalid(errs...)
	}
	return c, nil
}

// single returns the one document of a file as JSON.
func single(raw []byte) ([]byte, error) {
	if len(raw) > maxSize {
		return nil, fmt.Errorf("file has %d bytes: the limit is %d", len(raw), maxSize)
	}
	var found []byte
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, err
		}
		if string(asJSON) == "null" {
			continue
		}
		if found != nil {
			return nil, errors.New("file has several documents: keep the one of kind ManagerConfig")
		}
		found = asJSON
	}
	if found == nil {
		return nil, fmt.Errorf("file is empty: start with apiVersion: %s and kind: %s", APIVersion, Kind)
	}
	return found, nil
}

// fill replaces what the file set to null or to nothing by the default.
func (c *Config) fill() {
	d := Default()
	if c.Gateway.Labels == nil {
		c.Gateway.Labels = d.Gateway.Labels
	}
	if c.Identity.Keys == nil {
		c.Identity.Keys = d.Identity.Keys
	}
	if c.Identity.EnvKeys == nil {
		c.Identity.EnvKeys = d.Identity.EnvKeys
	}
	if c.Identity.IgnoreKeys == nil {
		c.Identity.IgnoreKeys = d.Identity.IgnoreKeys
	}
}

// typeError names the field and what it must be, where err is of JSON's types.
func typeError(err error) error {
	var bad *json.UnmarshalTypeError
	if !errors.As(err, &bad) {
		return err
	}
	if bad.Field == "" {
		return fmt.Errorf("file holds a %s: it must hold fields, apiVersion and kind first", bad.Value)
	}
	return fmt.Errorf("%s: is a %s in the file: write a %s", bad.Field, bad.Value, kindOf(bad.Type.Kind()))
}

// invalid joins mistakes under ErrInvalid, one a line where there are several.
func invalid(errs ...error) error {
	if len(errs) == 1 {
		return fmt.Errorf("%w: %w", ErrInvalid, errs[0])
	}
	return fmt.Errorf("%w:\n%w", ErrInvalid, errors.Join(errs...))
}
