package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSyntax is a document that is no YAML, or no object.
var ErrSyntax = errors.New("malformed document")

// ErrField is a field that its kind does not have, or a value of the wrong type.
var ErrField = errors.New("field")

// ErrKind is a kind or version that Portolan should know by its group and does not.
var ErrKind = errors.New("unknown kind")

// ErrName is an object without a name, or with one that it cannot have.
var ErrName = errors.New("unusable name")

// ErrCluster is an object of a cluster that it cannot be in.
var ErrCluster = errors.New("wrong cluster")

// ErrDuplicate is an object that was read before.
var ErrDuplicate = errors.New("same object")

// ErrInvalid is an object of ours with a value that its schema or a rule forbids.
var ErrInvalid = errors.New("the API server would refuse it")

// ErrTooLarge is a file above the bound.
var ErrTooLarge = errors.New("file exceeds the bound")

// Error is one thing that is wrong with a file.
type Error struct {
	// File is empty where a stream was read.
	File string
	// Document counts from 1; 0 is the file as a whole.
	Document int
	// Line is the first one of the document.
	Line int
	// Object is its kind, namespace and name, as far as they are known.
	Object string
	// Err wraps one of the errors of this package or of the file system.
	Err error
}

// Error implements error: file, document, object, cause and remedy.
func (e *Error) Error() string {
	var parts []string
	if at := (place{File: e.File, Document: e.Document, Line: e.Line}).String(); at != "" {
		parts = append(parts, at)
	}
	if e.Object != "" {
		parts = append(parts, e.Object)
	}
	return strings.Join(append(parts, e.Err.Error()), ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// place is where a document is.
type place struct {
	File     string
	Document int
	Line     int
}

func (p place) String() string {
	document := fmt.Sprintf("document %d (line %d)", p.Document, p.Line)
	switch {
	case p.Document == 0:
		return p.File
	case p.File == "":
		return document
	}
	return p.File + ": " + document
}
