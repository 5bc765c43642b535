// An empty assembly file lets shard.go declare a function without a body.
