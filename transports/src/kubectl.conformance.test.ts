// Against this machine through a fake kubectl, or against a live pod: CONFORMANCE_POD=name [CONFORMANCE_NAMESPACE=..]
// [CONFORMANCE_KUBECONFIG=..] [CONFORMANCE_CONTEXT=..] [KUBECTL=..].
import { afterAll } from "vitest";
import { conformance } from "./conformance";
import { KubectlTransport } from "./kubectl";
import { FakeKubectl } from "./testkit/fake-kubectl";

const { CONFORMANCE_POD: pod, CONFORMANCE_NAMESPACE: namespace = "default", CONFORMANCE_KUBECONFIG: kubeconfig, CONFORMANCE_CONTEXT: context } = process.env;
const fake = pod ? undefined : new FakeKubectl();
afterAll(() => fake?.remove());

conformance(
  pod ? `kubectl, pod ${namespace}/${pod}` : "kubectl, pods that are this machine",
  async () => new KubectlTransport(pod ? { namespace, pod, kubeconfig, context } : { kubectl: fake?.path, namespace, pod: "pod-a" }),
  { execsAtOnce: 8 },
);
