import type { Problem } from './types';

/** The server's refusal of a request: one sentence, and the fields that it is about. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly fields: Problem[] = [],
    /** When asking again may help, by the server; null: it does not say so. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** The message about the field at `path` or a field inside it. */
  about(path: string): string | undefined {
    return this.fields.find((field) => isBelow(field.path, path))?.message;
  }
}

/** The server took a request and then sent nothing for so long that asking again at once is no use. */
export class SilentServer extends ApiError {
  constructor() {
    super(
      0,
      `The server has sent nothing for ${SILENCE_MS / 1_000} s: check that EdgeLoom is running, then try again.`,
    );
  }
}

function isBelow(path: string, ancestor: string): boolean {
  return path === ancestor || path.startsWith(`${ancestor}.`) || path.startsWith(`${ancestor}[`);
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What to do when the server answers that nobody is logged in, for example because the session has ended. */
let whenLoggedOut: () => void = () => undefined;

export function onLoggedOut(handler: () => void): void {
  whenLoggedOut = handler;
}

let sessionToken = '';

/** The token from GET session, for servers that hide the cookie from scripts. */
export function setCsrfToken(token: string): void {
  sessionToken = token;
}

function csrfToken(): string {
  const cookie = document.cookie.split('; ').find((entry) => entry.startsWith('csrftoken='));
  return cookie ? decodeURIComponent(cookie.slice('csrftoken='.length)) : sessionToken;
}

async function request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await answer(method, path, body, signal);
  return response.status === 204 ? (undefined as T) : parseBody<T>(response);
}

async function answer(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (method !== 'GET') headers['X-CSRFToken'] = csrfToken();
  const form = body instanceof FormData; // the browser adds the multipart boundary
  if (body !== undefined && !form) headers['Content-Type'] = 'application/json';
  let response: Response;
  try {
    response = await fetch(`/api${path}`, {
      method,
      headers,
      signal,
      credentials: 'same-origin',
      body: body === undefined ? undefined : form ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'The server does not answer: check that EdgeLoom is running, then try again.');
  }
  if (!response.ok) throw await toError(response, path);
  return response;
}

/** POST a form that takes long, with `onProgress` getting the fraction of it that was sent. */
async function uploadSlowly<T>(
  path: string,
  form: FormData,
  onProgress: (fraction: number) => void,
  signal: AbortSignal,
): Promise<T> {
  const sent = new XMLHttpRequest(); // fetch does not say how much it has sent
  const response = await new Promise<Response>((resolve, reject) => {
    const gone = 'The connection broke before everything was sent: try again.';
    sent.open('POST', `/api${path}`);
    sent.setRequestHeader('Accept', 'application/json');
    sent.setRequestHeader('X-CSRFToken', csrfToken());
    sent.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    sent.onload = () => resolve(responseOf(sent));
    sent.onerror = () => reject(new ApiError(0, gone));
    sent.onabort = () => reject(new DOMException('The upload was stopped.', 'AbortError'));
    signal.addEventListener('abort', () => sent.abort());
    sent.send(form);
  });
  if (!response.ok) throw await toError(response, path);
  return parseBody<T>(response);
}

function responseOf(sent: XMLHttpRequest): Response {
  const type = sent.getResponseHeader('Content-Type') ?? '';
  return new Response(sent.responseText, {
    status: sent.status,
    statusText: sent.statusText,
    headers: { 'Content-Type': type },
  });
}

async function parseBody<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (response.headers.get('Content-Type')?.includes('json')) return JSON.parse(text) as T;
  return text as T;
}

async function toError(response: Response, path: string): Promise<ApiError> {
  if (response.status === 401 && path !== '/login') whenLoggedOut();
  try {
    const data = (await response.json()) as { detail?: unknown; fields?: Problem[] };
    const retryAfter = response.headers.get('Retry-After');
    const retryAfterMs = retryAfter === null ? null : 1_000 * Number(retryAfter);
    if (typeof data.detail === 'string')
      return new ApiError(response.status, data.detail, data.fields ?? [], retryAfterMs);
  } catch {
    // Not JSON but an error page of a proxy or web server: only the status is informative.
  }
  return new ApiError(response.status, `The server answered ${response.status} ${response.statusText}.`);
}

/** An answer that brings nothing for so long has stalled: its connection is dead, or the server hangs. */
const SILENCE_MS = 20_000;

/** Answers to requests that were made before the page needed them, or why there is none. */
const ahead = new Map<string, Promise<ArrayBuffer | Error>>();

/** Makes a request that the page is going to make: its next `bytes` of this path has the answer already. */
export function askAhead(path: string): void {
  ahead.set(
    path,
    bytesOf(path).catch((error: Error) => error),
  );
}

async function bytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  const asked = ahead.get(path);
  ahead.delete(path);
  const answer = asked && (await unlessAborted(asked, signal));
  if (answer instanceof ArrayBuffer) return answer;
  if (answer instanceof SilentServer) throw answer; // the page has waited long enough
  return bytesOf(path, signal); // after a refusal the page makes the request itself, and is told
}

function unlessAborted<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop);
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Reads an answer as JSON, as long as it makes progress. */
async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await bytesOf(path, signal))) as T;
}

/** The answer as long as it makes progress: it may take any time, but may not be silent for long. */
async function bytesOf(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  const silence = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  const signals = signal ? [signal, silence.signal] : [silence.signal];
  try {
    heard();
    const response = await answer('GET', path, undefined, AbortSignal.any(signals));
    const parts = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (part, out) => {
        heard();
        out.enqueue(part);
      },
    });
    return await new Response(response.body?.pipeThrough(parts)).arrayBuffer();
  } catch (error) {
    if (!silence.signal.aborted) throw error;
    throw new SilentServer();
  } finally {
    clearTimeout(timer);
  }
}

export const api = {
  get: <T>(path: string, signal?: AbortSignal) => request<T>('GET', path, undefined, signal),
  bytes,
  read,
  post: <T>(path: string, body?: unknown, signal?: AbortSignal) =>
    request<T>('POST', path, body ?? {}, signal),
  upload: <T>(path: string, form: FormData, signal?: AbortSignal) => request<T>('POST', path, form, signal),
  uploadSlowly,
  put: <T>(path: string, body: unknown) => request<T>('PUT', path, body),
  patch: <T>(path: string, body: unknown) => request<T>('PATCH', path, body),
  delete: <T>(path: string) => request<T>('DELETE', path),
};

/** Whether the server has said that there is no such thing. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** The message of whatever was thrown. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
