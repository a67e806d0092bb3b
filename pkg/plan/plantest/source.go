package plantest

import (
	"math/rand/v2"
)

// Source turns bytes into choices, so that a fuzzer which changes a byte changes
// one choice. Once the bytes are used up, every choice is the first.
type Source struct{ data []byte }

// NewSource returns a source of the given bytes.
func NewSource(data []byte) *Source { return &Source{data: data} }

// Seeded is a source of n bytes that depend on the seed alone.
func Seeded(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// Done is whether the bytes are used up.
func (s *Source) Done() bool { return len(s.data) == 0 }

// Below returns a number from 0 to most-1.
func (s *Source) Below(most int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % most
}

// Once is true once in n times.
func (s *Source) Once(n int) bool { return s.Below(n) == n-1 }

// Shuffle changes the order of n things by swapping.
func (s *Source) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, s.Below(i+1))
	}
}

// Pick chooses one of several values, the first most easily.
func Pick[T any](s *Source, of ...T) T { return of[s.Below(len(of))] }

// Some chooses any number of several values, in their order.
func Some[T any](s *Source, of ...T) []T {
	var out []T
	for _, v := range of {
		if s.Once(2) {
			out = append(out, v)
		}
	}
	return out
}
