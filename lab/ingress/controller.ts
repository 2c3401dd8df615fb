import { type Api, call, watch } from "./kube.ts";
import { GROUP_PATH, type KIngress, type Table, buildTable, isOurs, isReady, keyOf, readyStatus } from "./routes.ts";

export interface ControllerOptions {
  api: Api;
  ingressClass: string;
  domain: string;
  log: (text: string) => void;
  /** Ends the loop. */
  signal: AbortSignal;
}

/** Keeps the routing table equal to the cluster's ingresses of our class, and reports each as ready once its routes are in the table. */
export class Controller {
  table: Table = new Map();
  /** True once the first list was applied. */
  synced = false;
  private known = new Map<string, KIngress>();
  private readonly options: ControllerOptions;

  constructor(options: ControllerOptions) {
    this.options = options;
  }

  /** Lists and watches until aborted. Whatever goes wrong, a new list a second later puts it right: nothing depends on an event not being missed. */
  async run(): Promise<void> {
    const { signal, log } = this.options;
    while (!signal.aborted) {
      try {
        await this.listAndWatch();
      } catch (e) {
        log((e as Error).message);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  private async listAndWatch(): Promise<void> {
    const { api } = this.options;
    const list = (await call(api, "GET", `${GROUP_PATH}/ingresses`)) as { items: KIngress[]; metadata: { resourceVersion: string } };
    this.replaceAll(list.items);
    for (const ingress of list.items) await this.report(ingress);
    this.synced = true;
    for await (const { type, object } of watch(api, `${GROUP_PATH}/ingresses?resourceVersion=${list.metadata.resourceVersion}`, 60)) {
      if (type === "ERROR") throw new Error(`watch: ${JSON.stringify(object).slice(0, 300)}`);
      this.apply(type, object as KIngress);
      if (type !== "DELETED") await this.report(object as KIngress);
    }
  }

  replaceAll(items: readonly KIngress[]): void {
    this.known = new Map(items.filter((i) => isOurs(i, this.options.ingressClass)).map((i) => [keyOf(i), i]));
    this.table = buildTable(this.known.values());
  }

  apply(type: string, ingress: KIngress): void {
    if (type === "DELETED" || !isOurs(ingress, this.options.ingressClass)) this.known.delete(keyOf(ingress));
    else this.known.set(keyOf(ingress), ingress);
    this.table = buildTable(this.known.values());
  }

  private async report(ingress: KIngress): Promise<void> {
    const { api, ingressClass, domain, log } = this.options;
    if (!isOurs(ingress, ingressClass) || isReady(ingress)) return;
    const { namespace, name } = ingress.metadata;
    await call(api, "PATCH", `${GROUP_PATH}/namespaces/${namespace}/ingresses/${name}/status`, { status: readyStatus(ingress, domain, new Date().toISOString()) });
    log(`${keyOf(ingress)} is routed, generation ${ingress.metadata.generation}`);
  }
}
