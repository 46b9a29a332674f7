/** What the page asks the server about compared runs. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import type { Schemas } from '@/api/types/schemas';
import type { Comparison } from './comparison';

/** A figure of compared runs. */
export type RunsFigure = Schemas['RunsFigure'];

/** The runs that the address names. */
export interface Compared {
  ids: readonly number[];
  baseline: number | undefined;
  /** Whether they are a comparison at all. */
  enough: boolean;
}

const KEPT = { staleTime: 60_000, placeholderData: keepPreviousData } as const;

/** The table of these runs, by run or by group of repeats. */
export function useComparison({ ids, baseline, enough }: Compared, grouped: string | null) {
  const query = queryOf(ids, baseline, grouped === null ? [] : [['grouped', grouped]]);
  return useQuery({
    ...KEPT,
    queryKey: ['compare', query],
    enabled: enough,
    queryFn: ({ signal }) => api.get<Comparison>(`/compare?${query}`, signal),
  });
}

/** The figure of these runs as the address asks for it; null: no two have a value in common. */
export function useRunsFigure({ ids, baseline, enough }: Compared, chosen: readonly [string, string][]) {
  const query = queryOf(ids, baseline, chosen);
  return useQuery({
    ...KEPT,
    queryKey: ['compare', 'figure', query],
    enabled: enough,
    queryFn: ({ signal }) => api.get<RunsFigure | null>(`/compare/figure?${query}`, signal),
  });
}

function queryOf(
  ids: readonly number[],
  baseline: number | undefined,
  more: readonly [string, string][],
): string {
  return new URLSearchParams([['ids', ids.join(',')], ['baseline', String(baseline)], ...more]).toString();
}
