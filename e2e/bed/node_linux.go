package bed

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/portolan-mesh/portolan/pkg/testkit"
)

// nodeName is that of the one node of a cluster which is here. A pod that is
// bound to another one is somebody else's, or nobody's: only istiod hears of it.
const nodeName = "node"

// atOnce is how many pods of a cluster start or end at the same time.
const atOnce = 8

// node does in one cluster what the scheduler, a kubelet, kube-proxy and a
// cloud's load balancers would.
type node struct {
	*Cluster
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	// queue holds keys of pods, and rulesKey.
	queue workqueue.TypedRateLimitingInterface[string]
}

// rulesKey stands for everything that follows from Services and their endpoints.
const rulesKey = "*"

// watch starts to look after the pods and Services of the cluster, until life ends.
func (c *Cluster) watch(life context.Context) {
	factory := informers.NewSharedInformerFactory(c.kube, 0)
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 2*time.Second)
	n := &node{
		Cluster: c, pods: factory.Core().V1().Pods().Lister(), services: factory.Core().V1().Services().Lister(),
		slices: factory.Discovery().V1().EndpointSlices().Lister(), queue: workqueue.NewTypedRateLimitingQueue(limit),
	}
	pods := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			n.queue.Add(key)
		}
	}
	rules := func(any) { n.queue.AddAfter(rulesKey, 20*time.Millisecond) }
	on(factory.Core().V1().Pods().Informer(), pods)
	on(factory.Core().V1().Services().Informer(), rules)
	on(factory.Discovery().V1().EndpointSlices().Informer(), rules)
	factory.Start(life.Done())
	c.bed.work.Go(func() {
		<-life.Done()
		n.queue.ShutDown()
		factory.Shutdown()
	})
	for range atOnce {
		c.bed.work.Go(func() { n.run(life, factory) })
	}
}

// on calls one function for every change of an informer's objects.
func on(informer cache.SharedIndexInformer, f func(any)) {
	// The error is that of an informer which has stopped.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f, UpdateFunc: func(_, o any) { f(o) }, DeleteFunc: f,
	})
}

func (n *node) run(life context.Context, factory informers.SharedInformerFactory) {
	factory.WaitForCacheSync(life.Done())
	for {
		key, stop := n.queue.Get()
		if stop {
			return
		}
		err := n.reconcile(life, key)
		switch {
		case err == nil:
			n.queue.Forget(key)
		case life.Err() == nil:
			if n.queue.NumRequeues(key) > 3 {
				n.bed.Say("%s: %s: %v", n.Name, key, err)
			}
			n.queue.AddRateLimited(key)
		}
		n.queue.Done(key)
	}
}

func (n *node) reconcile(ctx context.Context, key string) error {
	if key == rulesKey {
		return n.program(ctx)
	}
	namespace, name, _ := strings.Cut(key, "/")
	pod, err := n.pods.Pods(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	running := n.pod(key)
	switch {
	case apierrors.IsNotFound(err):
		return n.end(running, 0)
	case pod.Spec.NodeName != "" && pod.Spec.NodeName != nodeName:
		return nil
	case pod.DeletionTimestamp != nil:
		grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 30)) * time.Second
		if err := n.end(running, grace); err != nil {
			return err
		}
		return n.forget(ctx, pod)
	case running != nil && running.uid != pod.UID:
		return n.end(running, 0)
	case running != nil && isReady(pod), pod.Status.Phase == corev1.PodFailed:
		return nil
	}
	return n.begin(ctx, pod)
}

// begin binds a pod, runs it and says that it is ready once it is.
func (n *node) begin(ctx context.Context, pod *corev1.Pod) error {
	pods := n.kube.CoreV1().Pods(pod.Namespace)
	if pod.Spec.NodeName == "" {
		bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: nodeName}}
		if err := pods.Bind(ctx, bind, metav1.CreateOptions{}); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	p := n.pod(key(pod))
	if p == nil {
		var err error
		if p, err = n.newPod(ctx, pod); err != nil {
			return fmt.Errorf("start pod: %w", err)
		}
		n.mu.Lock()
		if n.Cluster.pods != nil {
			n.Cluster.pods[key(pod)] = p
		}
		n.mu.Unlock()
		if err := n.report(ctx, pod, p, false); err != nil {
			return err
		}
	}
	if err := testkit.Until(ctx, ready, func() error { return p.ready(ctx) }); err != nil {
		return fmt.Errorf("pod is not ready: %w", err)
	}
	return n.report(ctx, pod, p, true)
}

// report writes a pod's status as a kubelet would.
func (n *node) report(ctx context.Context, pod *corev1.Pod, p *Pod, isReady bool) error {
	status := corev1.ConditionFalse
	if isReady {
		status = corev1.ConditionTrue
	}
	now, err := n.kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return client404(err)
	}
	if now.UID != pod.UID {
		return nil
	}
	if p.sidecar && now.Labels[tlsModeLabel] == "" {
		// As the injector would; gateways route to no other pods.
		now.Labels[tlsModeLabel] = "istio"
		if now, err = n.kube.CoreV1().Pods(pod.Namespace).Update(ctx, now, metav1.UpdateOptions{}); err != nil {
			return client404(err)
		}
	}
	at := metav1.Now()
	now.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: p.Address, PodIPs: []corev1.PodIP{{IP: p.Address}}, HostIP: hubAddress, StartTime: &at,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: at},
			{Type: corev1.ContainersReady, Status: status, LastTransitionTime: at},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: at},
		},
	}
	_, err = n.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return client404(err)
}

// client404 leaves out the error of an object that is gone: its deletion comes next.
func client404(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// end stops a pod that runs, if any, within the grace.
func (n *node) end(p *Pod, grace time.Duration) error {
	if p == nil {
		return nil
	}
	p.stop(grace)
	n.mu.Lock()
	delete(n.Cluster.pods, p.Namespace+"/"+p.Name)
	n.mu.Unlock()
	n.release(p.Address)
	return nil
}

// forget says that a pod which was to end has ended.
func (n *node) forget(ctx context.Context, pod *corev1.Pod) error {
	return client404(n.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	}))
}

func key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func (c *Cluster) pod(key string) *Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[key]
}

// claim takes a free address, the one that has been free for longest.
func (c *Cluster) claim() (string, int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range 250 {
		c.next = c.next%250 + 1
		if n := c.next + 4; !c.used[n] {
			c.used[n] = true
			return podAddress(c.index, n), n, nil
		}
	}
	return "", 0, fmt.Errorf("cluster %s has no address left", c.Name)
}

func (c *Cluster) release(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.used {
		if podAddress(c.index, n) == address {
			delete(c.used, n)
		}
	}
}
