/** Whether the server would refuse the same run again. */
import { ApiError } from '@/api/client';

/** Why the run as it is cannot be: it is not valid (422), or no plan is possible (409 about the strategy). Null where
 * the server could not answer, which may be another time. */
export function refusedForGood(error: unknown): string | null {
  if (!(error instanceof ApiError)) return null;
  return error.status === 422 || (error.status === 409 && error.about('strategy')) ? error.message : null;
}
