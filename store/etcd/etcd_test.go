package etcd_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"grl/store"
	"grl/store/etcd"
	"grl/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(runChild())
	}
	goleak.VerifyTestMain(m)
}

// open returns what opens an empty part of a cluster, until the test ends.
func open(cluster *storetest.Etcd) func(testing.TB) store.Engine {
	var opened atomic.Int64
	return func(t testing.TB) store.Engine {
		t.Helper()
		return openPart(t, cluster, fmt.Sprintf("part-%d/", opened.Add(1)))
	}
}

func openPart(t testing.TB, cluster *storetest.Etcd, prefix string) *etcd.Engine {
	t.Helper()
	e, err := etcd.Open(t.Context(), etcd.Options{Endpoints: cluster.Endpoints(), Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func TestOneNode(t *testing.T) {
	cluster := storetest.StartEtcd(t, 1)
	t.Run("engine", func(t *testing.T) { storetest.Run(t, open(cluster)) })
	t.Run("ledger", func(t *testing.T) { storetest.RunLedger(t, open(cluster)) })
}

func TestThreeNodes(t *testing.T) {
	cluster := storetest.StartEtcd(t, 3)
	t.Run("engine", func(t *testing.T) { storetest.Run(t, open(cluster)) })
	t.Run("ledger", func(t *testing.T) { storetest.RunLedger(t, open(cluster)) })
}

func BenchmarkApply(b *testing.B) { storetest.BenchmarkApply(b, open(storetest.StartEtcd(b, 1))) }
