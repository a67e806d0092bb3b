package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portolan-mesh/portolan/api/v1alpha1"
	"github.com/portolan-mesh/portolan/pkg/router"
)

// retry is after how long a status that could not be written is tried again.
const retry = 10 * time.Second

// shardMaps reads parts of tables from the ShardMaps of a namespace, and writes
// their status. Several routers may: a status depends on ShardMaps alone, so
// that all of them write the same.
type shardMaps struct {
	namespace string
	cache     cache.Cache
	client    client.Client
	log       logr.Logger

	// mu guards what follows.
	mu sync.Mutex
	// read is whether all of them were seen once, trouble why they were not.
	read    bool
	trouble string
	parts   []router.Source
	refused []refusal
	// good are the last good parts by the object's UID. Only run touches it, and generations.
	good        map[types.UID]router.Source
	generations map[types.UID]int64
}

func newShardMaps(config *rest.Config, namespace string, log logr.Logger) (*shardMaps, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// The one kind is known, so that a start needs no answer of the API server.
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{v1alpha1.KindShardMap, v1alpha1.KindShardMap + "List"} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	s := &shardMaps{namespace: namespace, log: log, good: map[types.UID]router.Source{}, generations: map[types.UID]int64{}}
	var err error
	s.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultNamespaces:        map[string]cache.Config{namespace: {}},
		DefaultWatchErrorHandler: s.refusedWatch,
	})
	if err != nil {
		return nil, fmt.Errorf("watch ShardMaps: %w", err)
	}
	s.client, err = client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("write the status of ShardMaps: %w", err)
	}
	return s, nil
}

// refusedWatch keeps why ShardMaps cannot be seen, for whoever asks whether the
// router is ready. The watch is tried again by itself.
func (s *shardMaps) refusedWatch(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = ": " + err.Error()
}

// state implements source.
func (s *shardMaps) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		return state{unread: "the ShardMaps of namespace " + s.namespace + " have not all been seen yet" + s.trouble}
	}
	return state{parts: s.parts, refused: s.refused}
}

// run implements source.
func (s *shardMaps) run(ctx context.Context, changed func()) error {
	wake := make(chan struct{}, 1)
	notify := func() {
		select {
		case wake <- struct{}{}:
		default: // it is asked for already
		}
	}
	informer, err := s.cache.GetInformer(ctx, &v1alpha1.ShardMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch ShardMaps: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	}); err != nil {
		return fmt.Errorf("watch ShardMaps: %w", err)
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		if err := s.cache.Start(ctx); err != nil {
			s.log.Error(err, "Watching ShardMaps")
		}
	})
	if !s.cache.WaitForCacheSync(ctx) {
		return nil // ctx ended
	}
	notify() // there may be none
	s.follow(ctx, wake, changed)
	return nil
}

// follow looks at all ShardMaps after each event, and again where a status could not be written.
func (s *shardMaps) follow(ctx context.Context, wake <-chan struct{}, changed func()) {
	timer := time.NewTimer(retry)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
		if err := s.handle(ctx, changed); err != nil && ctx.Err() == nil {
			s.log.Error(err, "Handling ShardMaps", "retryAfter", retry.String())
			timer.Reset(retry)
		}
	}
}

func (s *shardMaps) handle(ctx context.Context, changed func()) error {
	var all v1alpha1.ShardMapList
	if err := s.cache.List(ctx, &all, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("list ShardMaps: %w", err)
	}
	router.Sort(all.Items)
	if s.take(all.Items) {
		changed()
	}
	return s.report(ctx, all.Items)
}

// take makes parts of sorted ShardMaps, and says whether any is another than before.
func (s *shardMaps) take(sorted []v1alpha1.ShardMap) bool {
	generations := map[types.UID]int64{}
	for i := range sorted {
		generations[sorted[i].UID] = sorted[i].Generation
	}
	s.mu.Lock()
	same := s.read && apiequality.Semantic.DeepEqual(generations, s.generations)
	s.mu.Unlock()
	if same {
		return false
	}
	var (
		parts   []router.Source
		refused []refusal
		good    = map[types.UID]router.Source{}
		pace    = newPace()
	)
	for i := range sorted {
		part := router.SourceOf(&sorted[i])
		problems := router.Check(part.Spec, pace)
		if len(problems) > 0 {
			var kept bool
			name := part.Name
			part, kept = s.good[sorted[i].UID]
			refused = append(refused, refusal{name: name, problem: router.Describe(problems), kept: kept})
			if !kept {
				continue
			}
		}
		good[sorted[i].UID] = part
		parts = append(parts, part)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read, s.parts, s.refused, s.good, s.generations = true, parts, refused, good, generations
	return true
}

// report writes each status that is another than it should be.
func (s *shardMaps) report(ctx context.Context, sorted []v1alpha1.ShardMap) error {
	statuses := router.Statuses(sorted, newPace())
	var failed error
	for i, status := range statuses {
		o := &sorted[i]
		next := o.DeepCopy()
		for _, c := range status.Conditions {
			meta.SetStatusCondition(&next.Status.Conditions, c)
		}
		next.Status.Entries = status.Entries
		if apiequality.Semantic.DeepEqual(o.Status, next.Status) {
			continue
		}
		err := s.client.Status().Patch(ctx, next, client.MergeFrom(o))
		if client.IgnoreNotFound(err) != nil {
			failed = fmt.Errorf("write the status of ShardMap %s/%s: %w", o.Namespace, o.Name, err)
		}
	}
	return failed
}
