// The certificate of the relay's attach listener, and the authority that workers verify it by.
import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 86_400_000;
// A stack is not meant to live longer, and a certificate that ends while it does would cut its worker off.
const YEARS = 5;

const serial = () => randomBytes(16).toString("hex");
const pair = () => webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);

/**
 * A new authority and one server certificate of it for these DNS names, as PEM: `{ca, certificate, key}`. The authority's key is
 * dropped, so nobody can ever make a second one.
 */
export async function makeCertificate(names) {
  x509.cryptoProvider.set(webcrypto);
  const notBefore = new Date(Date.now() - DAY_MS); // clocks of laptops are off
  const notAfter = new Date(notBefore.getTime() + YEARS * 365 * DAY_MS);
  const authority = await pair(), server = await pair();
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(), name: "CN=dialout relay authority", notBefore, notAfter, keys: authority, signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true), new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true), await x509.SubjectKeyIdentifierExtension.create(authority.publicKey)],
  });
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(), subject: "CN=dialout relay", issuer: ca.subject, notBefore, notAfter, publicKey: server.publicKey, signingKey: authority.privateKey, signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns", value }))),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const key = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", server.privateKey));
  return { ca: `${ca.toString("pem")}\n`, certificate: `${certificate.toString("pem")}\n`, key: `-----BEGIN PRIVATE KEY-----\n${key.toString("base64").replace(/.{64}/g, "$&\n").trimEnd()}\n-----END PRIVATE KEY-----\n` };
}
