import { useSettled } from '@/api/useSettled';
import type { PredictResult, RunRequest, Why } from '@/api/types';

const SETTLED_MS = 400;
const WHY_SETTLED_MS = 700;

/** Name and notes do not affect a prediction. */
const nameless = (request: RunRequest | null) => request && { ...request, name: '', notes: '' };

/** Fetches the prediction of a request, shortly after every change; null: the draft is not complete. */
export function usePrediction(request: RunRequest | null) {
  const { stale, ...answer } = useSettled<PredictResult>('/predict', nameless(request), SETTLED_MS);
  return { ...answer, waiting: stale };
}

/** What binds each device under the request's plan; null: do not ask. */
export function useWhy(request: RunRequest | null) {
  return useSettled<Why>('/advice/why', nameless(request), WHY_SETTLED_MS);
}
