package fleet

import (
	"context"
	"crypto/sha256"
	"sync"
)

// usher leads a member from one connection to the next. One goroutine uses it.
type usher struct {
	*member
	wg *sync.WaitGroup
	// seen are the credentials that were taken up last, invalid why they cannot be used.
	seen    [sha256.Size]byte
	invalid Problem
	// used is the connection whose rows count, next the one that shall be.
	used, next *connection
}

// connection is a link that runs.
type connection struct {
	*link
	cancel context.CancelFunc
}

// step does whatever is due.
func (u *usher) step(ctx context.Context) {
	u.mu.Lock()
	wanted := u.wanted
	u.mu.Unlock()
	if wanted.id != u.seen {
		u.seen = wanted.id
		u.take(ctx, wanted)
	}
	u.promote()
	u.publish()
}

// take starts a connection with new credentials. The one in use stays in use.
func (u *usher) take(ctx context.Context, c credentials) {
	u.retire(u.next)
	u.next = nil
	u.invalid = Problem{}
	if u.used != nil && u.used.id == c.id {
		return
	}
	l, err := (*link)(nil), c.err
	if err == nil {
		l, err = newLink(u.member, c.id, c.config)
	}
	if err != nil {
		u.invalid = problemOf(err)
		u.log.Info("Refusing a kubeconfig", "reason", u.invalid.Reason, "message", u.invalid.Message)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &connection{link: l, cancel: cancel}
	u.wg.Go(func() { l.run(ctx) })
	if u.used == nil {
		l.gate.open()
		u.used = r
		return
	}
	u.next = r
}

// promote puts the next connection in the place of the one in use, once it
// loses nothing. No row leaves in between, since the gate of the new one opens
// with all that it has listed.
func (u *usher) promote() {
	if u.next == nil || !u.next.now().supersedes(u.used.now()) {
		return
	}
	u.log.Info("Replacing a connection", "uid", u.next.now().uid)
	u.used.gate.shut()
	u.next.gate.open()
	u.retire(u.used)
	u.used, u.next = u.next, nil
}

// retire ends c, if there is one. The goroutine of the link is waited for when
// the member ends, since the writes that are under way on it may take a moment.
func (u *usher) retire(c *connection) {
	if c != nil {
		c.gate.shut()
		c.cancel()
	}
}

// publish makes known what the connections amount to.
func (u *usher) publish() {
	s, settled, l := u.outlook()
	u.mu.Lock()
	was, wasSettled := u.status, u.settled
	u.status, u.settled, u.link = s, settled, l
	u.mu.Unlock()
	if was.State != s.State || was.Reason != s.Reason || was.Rotation != s.Rotation {
		u.log.Info("Noting the state of a cluster", "state", s.State, "reason", s.Reason, "message", s.Message,
			"rotation", s.Rotation.Reason)
	}
	if !was.equal(s) || wasSettled != settled {
		u.moved(u.name)
	}
}

// outlook is the status, whether the first attempt has ended, and the link in use.
func (u *usher) outlook() (Status, bool, *link) {
	var uids []string
	if u.next != nil {
		uids = append(uids, u.next.now().uid)
	}
	if u.used == nil {
		s := facts{problem: u.invalid}.status()
		return s, u.invalid != Problem{}, nil
	}
	f := u.used.now()
	u.directory.keep(u.name, append(uids, f.uid)...)
	s := f.status()
	switch {
	case u.invalid != Problem{}:
		s.Rotation = u.invalid
	case u.next != nil:
		s.Rotation = u.next.now().trouble()
	}
	return s, f.settled(), u.used.link
}
