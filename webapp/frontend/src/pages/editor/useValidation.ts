import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '@/api/client';
import type { Validation } from '@/api/types';
import type { Bits } from '@/run/request/WeightBits';
import { useDrawing } from './editorStore';
import { byItem, place } from './problems';

/** Also check whether this model fits, split by this strategy. Empty: no check. */
export interface FitQuestion {
  model: string | null;
  weight_bits: Bits;
  strategy: string | null;
}

/** Validates the drawing on the server shortly after every edit, and finds where each problem belongs. */
export function useValidation(question: FitQuestion) {
  const drawing = useDrawing();
  const [settled] = useDebouncedValue(drawing, 300);
  const empty = settled.spec.devices.length === 0;
  const answer = useQuery({
    queryKey: ['validation', settled, question],
    queryFn: ({ signal }) => api.post<Validation>('/clusters/validate', { ...settled, ...question }, signal),
    placeholderData: keepPreviousData,
    enabled: !empty,
    staleTime: Infinity,
    gcTime: 60_000,
  });
  const placed = useMemo(
    () =>
      empty
        ? []
        : (answer.data?.problems ?? []).map((problem) => ({
            ...place(problem, settled.spec),
            path: problem.path,
          })),
    [answer.data, settled, empty],
  );
  // A model that does not fit is no error of the drawing, but its devices are marked as well.
  const problems = useMemo(
    () => placed.filter(({ path }) => path !== 'model' && path !== 'strategy'),
    [placed],
  );
  const marks = useMemo(() => {
    const texts = byItem(placed);
    for (const [name, fit] of Object.entries(answer.data?.fits.devices ?? {})) {
      if (!fit.fits) texts[name] ??= `The weights of ${answer.data?.fits.model} do not fit here.`;
    }
    return texts;
  }, [placed, answer.data]);
  return {
    problems,
    marks,
    empty,
    validation: answer.data,
    error: answer.error,
    checking: answer.isFetching,
  };
}
