package bed

import (
	"fmt"
	"os"
)

// Required is the environment variable that makes Run fail where a bed cannot run.
const Required = "PORTOLAN_MESH"

// Run calls main in namespaces of its own, in which beds can be started, and
// returns its exit code. Where the machine does not allow it, it says so loudly
// and returns 0 without calling main, or 1 if Required is set. It is the whole of
// a TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(bed.Run(m.Run)) }
func Run(main func() int) int {
	code, err := isolate(main)
	if err == nil {
		return code
	}
	fmt.Fprintf(os.Stderr, "\n*** NOT RUN: no mesh of real proxies can be started here: %v\n\n", err)
	if os.Getenv(Required) != "" {
		return 1
	}
	return 0
}
