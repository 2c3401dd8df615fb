/** `tenant/sessionId` made safe for keys and paths: other characters become `-`, both ends alphanumeric, never empty. */
export function sessionKey(sessionId: string, tenant?: string): string {
  const joined = tenant ? `${tenant}/${sessionId}` : sessionId;
  return joined.replace(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "") || "leaf";
}
