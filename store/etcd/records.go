package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"grl/store"
)

// Get implements store.Engine.
func (e *Engine) Get(ctx context.Context, keys ...string) ([]store.Record, error) {
	for _, key := range keys {
		if err := store.CheckKey(key); err != nil {
			return nil, fmt.Errorf("get records: %w", err)
		}
	}
	records, err := e.get(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("get records: %w", classify(ctx, err))
	}
	return records, nil
}

// get reads what one request cannot at the moment of the first one.
func (e *Engine) get(ctx context.Context, keys []string) ([]store.Record, error) {
	records := make([]store.Record, 0, len(keys))
	moment := int64(0) // revision of etcd; 0: the present one
	for chunk := range slices.Chunk(keys, opsPerTxn) {
		ops := make([]clientv3.Op, len(chunk))
		for i, key := range chunk {
			ops[i] = clientv3.OpGet(e.prefix+key, clientv3.WithRev(moment))
		}
		answer, err := e.txn(ctx, nil, ops)
		if err != nil {
			return nil, err
		}
		if moment == 0 {
			moment = answer.Header.Revision
		}
		for i, response := range answer.Responses {
			record := store.Record{Key: chunk[i]}
			if found := response.GetResponseRange().Kvs; len(found) > 0 {
				record = e.record(found[0])
			}
			records = append(records, record)
		}
	}
	return records, nil
}

func (e *Engine) txn(ctx context.Context, conditions []clientv3.Cmp, ops []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := request(ctx)
	defer cancel()
	return e.client.Txn(ctx).If(conditions...).Then(ops...).Commit()
}

func (e *Engine) record(kv *mvccpb.KeyValue) store.Record {
	return store.Record{
		Key:     strings.TrimPrefix(string(kv.Key), e.prefix),
		Value:   kv.Value,
		Version: uint64(kv.ModRevision),
	}
}

// List implements store.Engine.
func (e *Engine) List(ctx context.Context, prefix, after string, limit int) ([]store.Record, error) {
	records, err := e.list(ctx, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	return records, nil
}

func (e *Engine) list(ctx context.Context, prefix, after string, limit int) ([]store.Record, error) {
	if prefix != "" {
		if err := store.CheckKey(prefix); err != nil {
			return nil, err
		}
	}
	from := e.prefix + max(prefix, after+"\x00") // the least key beyond after
	to := e.prefix + prefix + "\x7f"             // no key has such a byte
	if from >= to {
		return nil, nil
	}
	within, cancel := request(ctx)
	defer cancel()
	answer, err := e.client.Get(within, from, clientv3.WithRange(to), clientv3.WithLimit(int64(max(limit, 0))))
	if err != nil {
		return nil, classify(ctx, err)
	}
	records := make([]store.Record, len(answer.Kvs))
	for i, kv := range answer.Kvs {
		records[i] = e.record(kv)
	}
	return records, nil
}

// Commit implements store.Engine.
func (e *Engine) Commit(ctx context.Context, conditions []store.Condition, writes []store.Write) error {
	if err := e.commit(ctx, conditions, writes); err != nil {
		return fmt.Errorf("commit records: %w", err)
	}
	return nil
}

func (e *Engine) commit(ctx context.Context, conditions []store.Condition, writes []store.Write) error {
	if err := store.CheckCommit(conditions, writes); err != nil {
		return err
	}
	var compares []clientv3.Cmp
	for _, c := range conditions {
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(e.prefix+c.Key), "=", int64(c.Version)))
	}
	var ops []clientv3.Op
	for _, w := range writes {
		if w.Delete {
			ops = append(ops, clientv3.OpDelete(e.prefix+w.Key))
		} else {
			ops = append(ops, clientv3.OpPut(e.prefix+w.Key, string(w.Value)))
		}
	}
	answer, err := e.txn(ctx, compares, ops)
	if err != nil {
		return classify(ctx, err)
	}
	if !answer.Succeeded {
		return store.ErrConflict
	}
	return nil
}
