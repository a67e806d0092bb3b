package apply

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// errGone is for an object that is not there.
	errGone = errors.New("the object does not exist")
	// errExists is for an object that is there.
	errExists = errors.New("the object exists")
	// errOwned is for a field that someone else set to another value.
	errOwned = errors.New("someone else owns a field")
)

const (
	// maxFields is how many fields of an invalid object an error names.
	maxFields = 3
	// maxWebhook is how much of what a webhook says is passed on.
	maxWebhook = 200
)

// explain says in words of our own what an API server answered. Of its text
// only the names of fields and the verdict of a webhook are passed on, since
// the rest may quote what was sent.
func explain(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	case !errors.As(err, &status):
		return ErrUnreachable
	}
	s := status.Status()
	switch {
	case s.Reason == metav1.StatusReasonUnauthorized:
		return ErrUnauthorized
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ErrNamespaceEnding
	case s.Reason == metav1.StatusReasonNotFound:
		return notFound(s)
	case s.Reason == metav1.StatusReasonAlreadyExists:
		return errExists
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return errOwned
	case s.Reason == metav1.StatusReasonConflict:
		return ErrChanged
	case strings.HasPrefix(s.Message, "admission webhook "):
		return fmt.Errorf("%w: %s", ErrWebhook, clip(s.Message))
	case s.Reason == metav1.StatusReasonForbidden:
		return ErrForbidden
	case s.Reason == metav1.StatusReasonInvalid, s.Reason == metav1.StatusReasonBadRequest, s.Code == 422, len(unknownFields(s)) > 0:
		return invalid(s)
	case s.Code == 429:
		return ErrBusy
	case s.Code == 504:
		return ErrTimeout
	case s.Code == 502, s.Code == 503:
		return ErrUnreachable
	case s.Code >= 500:
		return ErrServer
	}
	return ErrInvalid
}

// notFound tells a missing object from a missing namespace and a missing kind.
func notFound(s metav1.Status) error {
	switch {
	case s.Details != nil && s.Details.Kind == "namespaces":
		return ErrNamespaceMissing
	case s.Details != nil && s.Details.Name != "" && (s.Details.Group != "" || s.Details.Kind == "services") && !strings.Contains(s.Message, "the server could not find"):
		return errGone
	}
	return ErrKindMissing
}

// invalid names the fields that an API server refuses.
func invalid(s metav1.Status) error {
	var fields []string
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Field != "" && len(cause.Field) <= 100 {
				fields = append(fields, cause.Field)
			}
		}
	}
	fields = append(fields, unknownFields(s)...)
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if len(fields) == 0 {
		return ErrInvalid
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(fields[:min(len(fields), maxFields)], ", "))
}

// unknownFields are the fields of an object that an API server does not know, nil if
// that is not what it says. Of a server-side apply it says so in words alone, and
// calls it an error of its own.
func unknownFields(s metav1.Status) []string {
	unknown := regexp.MustCompile(`\.([A-Za-z0-9_.\[\]]{1,100}): field not declared in schema|unknown field "([A-Za-z0-9_.\[\]]{1,100})"`)
	var fields []string
	for _, match := range unknown.FindAllStringSubmatch(s.Message, maxFields) {
		fields = append(fields, match[1]+match[2])
	}
	return fields
}

// clip bounds a text.
func clip(s string) string {
	if len(s) <= maxWebhook {
		return s
	}
	return strings.ToValidUTF8(s[:maxWebhook], "") + "…"
}
