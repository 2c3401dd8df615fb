import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { type Cluster, inside } from "./cluster";
import { type KubeObject, unawaited } from "./kube";

type Create = (name: string, args: never, opts: pulumi.CustomResourceOptions) => pulumi.CustomResource;
const make = <A>(type: new (name: string, args: A, opts: pulumi.CustomResourceOptions) => pulumi.CustomResource) => ((name, args: A, opts) => new type(name, args, opts)) as Create;

const types: Readonly<Record<string, Create>> = {
  "apps/v1/Deployment": make(k8s.apps.v1.Deployment),
  "v1/Service": make(k8s.core.v1.Service),
  "v1/ServiceAccount": make(k8s.core.v1.ServiceAccount),
  "v1/Namespace": make(k8s.core.v1.Namespace),
  "rbac.authorization.k8s.io/v1/Role": make(k8s.rbac.v1.Role),
  "rbac.authorization.k8s.io/v1/RoleBinding": make(k8s.rbac.v1.RoleBinding),
  "networking.k8s.io/v1/NetworkPolicy": make(k8s.networking.v1.NetworkPolicy),
  "serving.knative.dev/v1/Service": make(k8s.apiextensions.CustomResource),
};

/** Puts a plain object into the cluster as a resource of its own kind, named `name` (default: its own name) in the stack. */
export function place(cluster: Cluster, parent: pulumi.Resource, object: KubeObject, more: pulumi.CustomResourceOptions & { name?: string } = {}): pulumi.CustomResource {
  const { name = object.metadata.name, ...opts } = more;
  const create = types[`${object.apiVersion}/${object.kind}`];
  if (!create) throw new Error(`no resource type for ${object.apiVersion} ${object.kind}; add it to components/objects.ts`);
  // Pulumi's wait for a Service takes ten seconds at least; the Deployment behind it, which comes first, has said that it is ready.
  const args = object.kind === "Service" && object.apiVersion === "v1" ? unawaited(object) : object;
  return create(name, args as never, inside(cluster, parent, opts));
}
