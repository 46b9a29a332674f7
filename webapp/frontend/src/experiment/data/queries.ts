/** Requests about experiments, and how often they are repeated. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import { api } from '@/api/client';
import { useSettled } from '@/api/useSettled';
import type {
  AnalysisAnswer,
  ExperimentRow,
  FigureAnswer,
  FigureVerdict,
  PivotAnswer,
  PlannersAnswer,
  PreviewAnswer,
  Remedy,
  Reproductions,
  RowAnswer,
  RowsAnswer,
  ShippedExperiment,
  StoredExperiment,
  StudyResults,
} from './answers';
import type { FactorOption } from './design';
import { merged } from './rows';
import type { ExperimentDocument, FigureSpec, TableSpec } from './types';

const DEBOUNCE_MS = 300;
const POLL_MS = 500;

export function useExperiments() {
  return useQuery({
    queryKey: ['experiments'],
    queryFn: ({ signal }) => api.get<ExperimentRow[]>('/experiments', signal),
    refetchInterval: (query) => (query.state.data?.some((row) => row.state === 'running') ? 2_000 : 15_000),
    staleTime: 0,
  });
}

export function useExperiment(id: number, enabled = true) {
  return useQuery({
    enabled,
    queryKey: ['experiments', id],
    queryFn: ({ signal }) => api.get<StoredExperiment>(`/experiments/${id}`, signal),
    refetchInterval: (query) => (query.state.data?.state === 'running' ? 2_000 : 15_000),
    staleTime: 0,
  });
}

/** What can be varied in a run; null: the run is not complete. */
export function useFactorOptions(base: Record<string, unknown> | null) {
  return useSettled<FactorOption[]>('/experiments/factors', base && { base }, DEBOUNCE_MS);
}

/**
 * The prediction of every point of an experiment that is being designed, shortly after every change: asked again
 * until no point is waiting. null: the design is not complete.
 */
export function usePreview(experiment: ExperimentDocument | null) {
  // The name does not affect the points.
  const nameless = experiment && { experiment: { ...experiment, name: 'preview', title: '' } };
  return useSettled<PreviewAnswer>('/experiments/preview', nameless, DEBOUNCE_MS, (answer) =>
    (answer?.waiting ?? 0) > 0 ? POLL_MS : false,
  );
}

/** What would make the methods of an experiment differ that come to one plan; null: they differ. */
export function useRemedies(experiment: ExperimentDocument | null) {
  return useSettled<Remedy[]>('/experiments/remedies', experiment && { experiment }, DEBOUNCE_MS);
}

/** All rows of an experiment: after the first answer only those that changed are fetched. */
export function useRows(id: number) {
  const kept = useRef<{ id: number; cursor: number; rows: RowAnswer[] }>({ id, cursor: 0, rows: [] });
  return useQuery({
    queryKey: ['experiments', id, 'rows'],
    queryFn: async ({ signal }): Promise<RowsAnswer> => {
      if (kept.current.id !== id) kept.current = { id, cursor: 0, rows: [] };
      const { cursor, rows } = kept.current;
      const answer = await api.get<RowsAnswer>(`/experiments/${id}/rows?since=${cursor}`, signal);
      kept.current = { id, cursor: answer.cursor, rows: merged(rows, answer.rows) };
      return { ...answer, rows: kept.current.rows };
    },
    refetchInterval: (query) => (query.state.data?.state === 'running' ? 1_000 : 10_000),
    staleTime: 0,
  });
}

/** Figures, tables, best, claims and break-even lines of an experiment; `token` changes when its rows do. */
export function useAnalysis(id: number, token: string, enabled: boolean) {
  return useQuery({
    enabled,
    queryKey: ['experiments', id, 'analysis', token],
    queryFn: ({ signal }) => api.get<AnalysisAnswer>(`/experiments/${id}/analysis`, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
}

/** The results of the study from which an experiment was imported, beside ours; `token` as for the analysis. */
export function useStudyResults(id: number, token: string, enabled: boolean) {
  return useQuery({
    enabled,
    queryKey: ['experiments', id, 'study', token],
    queryFn: ({ signal }) => api.get<StudyResults>(`/experiments/${id}/study`, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
}

/** What planner=best would give the methods of an experiment that has been carried out. */
export function usePlanners(id: number, token: string, enabled: boolean) {
  return useQuery({
    enabled,
    queryKey: ['experiments', id, 'planners', token],
    queryFn: ({ signal }) => api.get<PlannersAnswer>(`/experiments/${id}/planners`, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    retry: false,
  });
}

/** The values of a figure that a person composed; null: one of the experiment's own is shown. */
export function useFigure(id: number, figure: FigureSpec | null, token: string) {
  return useQuery({
    queryKey: ['experiments', id, 'figure', figure, token],
    queryFn: ({ signal }) => api.post<FigureAnswer>(`/experiments/${id}/figure`, { figure }, signal),
    enabled: figure !== null,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    retry: false,
  });
}

/** A pivot table that a person composed. */
export function useTable(id: number, table: TableSpec | null, token: string) {
  return useQuery({
    queryKey: ['experiments', id, 'table', table, token],
    queryFn: ({ signal }) => api.post<PivotAnswer>(`/experiments/${id}/table`, { table }, signal),
    enabled: table !== null,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    retry: false,
  });
}

/** The experiments that come with EdgeLoom: those to start from, then those of the papers. */
export function useShipped() {
  return useQuery({
    queryKey: ['shipped experiments'],
    queryFn: ({ signal }) => api.get<ShippedExperiment[]>('/experiments/shipped', signal),
    staleTime: Infinity,
  });
}

/** How the published figures of the papers compare with ours. */
export function useReproductions() {
  return useQuery({
    queryKey: ['reproductions'],
    queryFn: ({ signal }) => api.get<Reproductions>('/experiments/reproductions', signal),
    staleTime: Infinity,
  });
}

/** Every published figure of one experiment beside ours. */
export function useReproduction(name: string) {
  return useQuery({
    queryKey: ['reproductions', name],
    queryFn: ({ signal }) => api.get<FigureVerdict[]>(`/experiments/reproductions/${name}`, signal),
    staleTime: Infinity,
  });
}

/** Where a file of an experiment is: of one figure or table, by its name or as the JSON of a composed one; of a
 * study, with the `sources` of its methods. */
export function exportLink(
  id: number,
  format: string,
  chosen: { figure?: string; table?: string; size?: string; sources?: string } = {},
): string {
  const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
  return `/api/experiments/${id}/export/${format}${query.size > 0 ? `?${query}` : ''}`;
}
