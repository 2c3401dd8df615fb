import { show, type Logger } from "@dialout/common";
import { experimental } from "@grpc/grpc-js";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";

export interface TlsFiles {
  certFile: string;
  keyFile: string;
}

export interface KeyPair {
  cert: Buffer;
  key: Buffer;
}

type Listener = experimental.IdentityCertificateUpdateListener;

/**
 * Certificate and key for the library, read again from their files so that a renewed pair counts for the next connection without a
 * restart. The library's own provider for files takes a pair that is being replaced for none at all and then refuses everybody; this
 * one goes on with the last good pair until a better one is whole.
 */
export class CertificateFiles implements experimental.CertificateProvider {
  private readonly listeners = new Set<Listener>();
  private timer: NodeJS.Timeout | undefined;
  private complained = "";

  constructor(
    private readonly files: TlsFiles,
    private current: KeyPair,
    private readonly everyMs: number,
    private readonly log: Logger,
  ) {}

  addIdentityCertificateListener(listener: Listener): void {
    this.listeners.add(listener);
    process.nextTick(() => this.tell(listener));
    this.timer ??= setInterval(() => this.look(), this.everyMs).unref();
  }

  removeIdentityCertificateListener(listener: Listener): void {
    this.listeners.delete(listener);
    if (this.listeners.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  // Workers bring tokens, not certificates.
  addCaCertificateListener(): void {}
  removeCaCertificateListener(): void {}

  private look(): void {
    let next: KeyPair;
    try {
      next = { cert: readFileSync(this.files.certFile), key: readFileSync(this.files.keyFile) };
      if (next.cert.equals(this.current.cert) && next.key.equals(this.current.key)) return void (this.complained = "");
      createSecureContext(next); // throws when the two do not match
    } catch (e) {
      const why = (e as Error).message;
      if (why !== this.complained) this.log.warn(`the certificate in ${show(this.files.certFile)} and its key cannot be used (${why}): going on with the pair that was read before`);
      this.complained = why;
      return;
    }
    this.complained = "";
    this.current = next;
    for (const listener of this.listeners) this.tell(listener);
    this.log.info({ file: this.files.certFile }, "the certificate was renewed; connections from now on get the new one");
  }

  private tell(listener: Listener): void {
    listener({ certificate: this.current.cert, privateKey: this.current.key });
  }
}
