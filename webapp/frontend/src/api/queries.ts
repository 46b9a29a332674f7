import { QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { ApiError, api, askAhead, setCsrfToken, SilentServer } from './client';
import { setProgram } from './command';
import type {
  Catalogue,
  ClusterRow,
  ClusterSpec,
  Fleet,
  Holder,
  Metric,
  Picture,
  RunRow,
  StoredRun,
  Showcase,
} from './types';
import { isOver } from './types';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // Retry only requests that got no answer or a redirect; an error status will not change.
      retry: (failures, error) => failures < 2 && !isFinal(error),
      refetchInterval: (query) => whenToAskAgain(query.state.error) ?? false,
    },
  },
});

/** Milliseconds after which the server expects to answer what it refused; undefined: it did not say so. */
export function whenToAskAgain(error: unknown): number | undefined {
  return error instanceof ApiError ? (error.retryAfterMs ?? undefined) : undefined;
}

/** Whether the same request would fail the same way, or only after a long wait. */
function isFinal(error: unknown): boolean {
  return error instanceof SilentServer || (error instanceof ApiError && error.status >= 400);
}

/** The table of figures: name, title, unit and better direction of everything that is measured. */
const METRICS = queryOptions({
  queryKey: ['metrics'],
  queryFn: ({ signal }) => api.get<Metric[]>('/metrics', signal),
  staleTime: Infinity,
});

const OF_RUNS = (all: readonly Metric[]) => all.filter((metric) => metric.of === 'run');

/** The figures of runs; none until the server has answered. */
export const useMetrics = (): readonly Metric[] =>
  useQuery({ ...METRICS, select: OF_RUNS }).data ?? NO_METRICS;
const NO_METRICS: readonly Metric[] = [];

/** The titles of a device's, a link's or a request's figures, by their names; "" until the server has answered. */
export function useTitles(of: Metric['of']): (name: string) => string {
  const all = useQuery(METRICS).data ?? NO_METRICS;
  return (name) => all.find((metric) => metric.of === of && metric.name === name)?.title ?? '';
}

export interface Session {
  user: string;
  role: 'viewer' | 'operator' | 'admin';
  csrf_token: string;
  /** What a person types to call EdgeLoom's command on the server's machine. */
  program: string;
}

const SESSION = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal }): Promise<Session | null> => {
    try {
      const session = await api.get<Session>('/session', signal);
      setCsrfToken(session.csrf_token);
      setProgram(session.program);
      return session;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: Infinity,
});

/** Who is logged in; null if nobody is. */
export const useSession = () => useQuery(SESSION);

export function askForSession(): void {
  void queryClient.prefetchQuery(SESSION);
}

/** Asks for all that the start page shows as soon as somebody is known to be logged in, before it is rendered. */
export async function askForStart(): Promise<void> {
  const session = await queryClient.fetchQuery(SESSION).catch(() => null); // the page says what is wrong
  if (!session) return;
  void queryClient.prefetchQuery(newestRuns(MANY_RUNS));
  void queryClient.prefetchQuery(CLUSTERS);
  void queryClient.prefetchQuery(CATALOGUE);
  void queryClient.prefetchQuery(SHOWCASES);
}

/** The random picture that a model gets in a run with this seed if the workload has none. */
export function useRandomPicture(model: string, seed: number, enabled: boolean) {
  return useQuery({
    queryKey: ['picture', model, seed],
    queryFn: ({ signal }) => api.get<Picture>(`/models/${model}/picture?seed=${seed}`, signal),
    enabled,
    staleTime: Infinity,
  });
}

/** For each strategy the reason why it cannot run this model on this cluster, or null. */
export function useSupports(
  pair: { cluster_id?: number | null; cluster?: ClusterSpec; model: string } | null,
) {
  return useQuery({
    queryKey: ['supports', pair],
    queryFn: ({ signal }) => api.post<Record<string, string | null>>('/supports', pair, signal),
    enabled: pair !== null,
    staleTime: 60_000,
  });
}

export interface TraceRow {
  name: string;
  about: string;
}

/** Example traces of a link's rate. */
export function useTraces() {
  return useQuery({
    queryKey: ['traces'],
    queryFn: ({ signal }) => api.get<TraceRow[]>('/traces', signal),
    staleTime: Infinity,
  });
}

/** Whether this person may change anything. */
export function useMayWrite(): boolean {
  const { data } = useSession();
  return data?.role === 'operator' || data?.role === 'admin';
}

export interface Health {
  redis: string | null;
  worker_emulate: boolean;
  /** Whether the server has just begun, so that missing workers may be on their way. */
  starting: boolean;
  worker_plan: boolean;
  queue_length: number;
  waiting_points: number;
  busy_run: number | null;
  /** Another program that emulates on the machine of every emulating worker, so that runs wait for it. */
  held_by: Holder | null;
  storage: string | null;
}

/** The state of the server, polled every 5 s, so that every page shows a missing worker. */
export function useHealth() {
  return useQuery({
    queryKey: ['health'],
    queryFn: ({ signal }) => api.read<Health>('/health', signal),
    refetchInterval: 5_000,
    staleTime: 0,
  });
}

/** Every worker, what it does, and what packages add to it and to the server. */
export const FLEET = queryOptions({
  queryKey: ['fleet'],
  queryFn: ({ signal }) => api.get<Fleet>('/fleet', signal),
});

const NONE: readonly string[] = [];

/** In sentences: methods that a worker has and the server not, so that no form can offer them. */
export const useElsewhere = () => useQuery({ ...FLEET, select: (fleet) => fleet.elsewhere }).data ?? NONE;

const CATALOGUE = queryOptions({
  queryKey: ['catalogue'],
  queryFn: ({ signal }) => api.get<Catalogue>('/catalogue', signal),
  staleTime: 10 * 60_000,
});

export const useCatalogue = () => useQuery(CATALOGUE);

const CLUSTERS = queryOptions({
  queryKey: ['clusters'],
  queryFn: ({ signal }) => api.get<ClusterRow[]>('/clusters', signal),
});

export const useClusters = () => useQuery(CLUSTERS);

const SHOWCASES = queryOptions({
  queryKey: ['showcases'],
  queryFn: ({ signal }) => api.get<Showcase[]>('/showcases', signal),
  staleTime: Infinity,
  // The model of the first demo may be fetched beside all else: then it is offered.
  refetchInterval: ({ state }) => (state.data?.some(({ to_fetch }) => to_fetch) ? 15_000 : false),
});

/** The start page's run, reasons to distribute, and what every paper's method was invented for. */
export const useShowcases = () => useQuery(SHOWCASES);

/** About as wide as a figure with its unit, so that the lines are the same once it is there. */
const TO_COME = '\u2007\u2007…\u2007\u2007';

/** What to expect of a showcase, with predicted figures, or why there are none; "…" stands for each while they are
 * predicted.
 */
export function useExpected({ name, expected }: Showcase): string {
  const { data, error } = useQuery({
    queryKey: ['showcases', name],
    queryFn: ({ signal }) => api.get<{ expected: string }>(`/showcases/${name}/expected`, signal),
    staleTime: Infinity,
  });
  if (error && !data) return `No figures: ${error.message}`;
  return data?.expected ?? expected.replaceAll(/\{[^}]*\}/g, TO_COME);
}

const MANY_RUNS = 100;
const newestRuns = (limit: number) =>
  queryOptions({
    queryKey: ['runs', 'newest', limit],
    queryFn: ({ signal }) => api.get<RunRow[]>(`/runs?limit=${limit}`, signal),
  });

/** The newest `limit` runs; polled more often while one of them is not over. */
export function useRuns(limit = MANY_RUNS) {
  return useQuery({
    ...newestRuns(limit),
    refetchInterval: (query) => (query.state.data?.some((run) => !isOver(run.status)) ? 2_000 : 15_000),
    staleTime: 0,
  });
}

const runOf = (id: number) =>
  queryOptions({
    queryKey: ['runs', id],
    queryFn: ({ signal }) => api.get<StoredRun>(`/runs/${id}`, signal),
    // What was asked for before the page was rendered is not asked for again.
    staleTime: 1_000,
  });

export function useRun(id: number, enabled = true) {
  return useQuery({
    ...runOf(id),
    enabled,
    refetchInterval: (query) => (query.state.data && isOver(query.state.data.status) ? false : 3_000),
  });
}

/** Asks for a run and its past before its page is rendered. */
export function askForRun(id: number): void {
  void queryClient.prefetchQuery(runOf(id));
  askAhead(pastPath(id, '0'));
}

/** Where the events of a run after batch `since` are, as columns. */
export function pastPath(id: number, since: string): string {
  return `/runs/${id}/past?since=${since}`;
}

/** A mutation on the server; afterwards the queries whose keys start with one of `keys` are fetched again. */
export function useChange<Input, Output>(
  keys: string | readonly string[],
  change: (input: Input) => Promise<Output>,
) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all([keys].flat().map((key) => client.invalidateQueries({ queryKey: [key] }))),
  });
}
