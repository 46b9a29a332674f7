import { useSettled } from '@/api/useSettled';
import type { PredictResult, RunRequest, Why } from '@/api/types';

const SETTLED_MS = 400;
const WHY_SETTLED_MS = 700;

/** Without what does not affect a prediction: labels, and a dilation, since the predicted time is virtual. */
export const asPredicted = (request: RunRequest): RunRequest => ({
  ...request,
  name: '',
  notes: '',
  tags: [],
  dilation: request.dilation === 'native' ? 'native' : 'auto',
});

/** Fetches the prediction of a request, shortly after every change; null: the draft is not complete. */
export function usePrediction(request: RunRequest | null) {
  const { stale, ...answer } = useSettled<PredictResult>(
    '/predict',
    request && asPredicted(request),
    SETTLED_MS,
  );
  return { ...answer, waiting: stale };
}

/** What binds each device under the request's plan; null: do not ask. */
export function useWhy(request: RunRequest | null) {
  return useSettled<Why>('/advice/why', request && asPredicted(request), WHY_SETTLED_MS);
}
