module lab.local/operator

go 1.22.0

require knative.dev/operator v0.42.2
