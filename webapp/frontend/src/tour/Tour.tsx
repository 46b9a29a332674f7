import { lazy, Suspense } from 'react';
import { rememberTour } from './remembered';
import { useTour } from './tour';

const TourCard = lazy(async () => ({ default: (await import('./TourCard')).TourCard }));

/** The tour while somebody takes it; its end is remembered. */
export function Tour({ user }: { user: string }) {
  const { step, go } = useTour();
  if (step === null) return null;
  const goOn = (next: number | null) => {
    if (next === null) rememberTour(user);
    go(next);
  };
  return (
    <Suspense>
      <TourCard key={step} step={step} onGo={goOn} />
    </Suspense>
  );
}
