import { Button, CloseButton, Group, Text } from '@mantine/core';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { STEPS } from './steps';
import classes from './tour.module.css';

interface Props {
  step: number;
  /** Another step, or null to end. */
  onGo: (step: number | null) => void;
}

const WIDTH = 320;
const MARGIN = 12;

/** One step of the tour: a card below what it points at. Escape ends it, the arrow keys go on and back. */
export function TourCard({ step, onGo }: Props) {
  const { target, title, text } = STEPS[step]!;
  const place = usePlace(target);
  const next = useRef<HTMLButtonElement>(null);
  useEffect(() => next.current?.focus(), []);
  const last = step === STEPS.length - 1;
  const press = (event: React.KeyboardEvent) => {
    if (event.key === 'Escape') onGo(null);
    else if (event.key === 'ArrowRight' && !last) onGo(step + 1);
    else if (event.key === 'ArrowLeft' && step > 0) onGo(step - 1);
    else return;
    event.preventDefault();
  };
  return (
    <>
      {place && <div className={classes.ring} style={place.ring} aria-hidden />}
      <div
        className={classes.card}
        style={{ width: WIDTH, ...place?.card }}
        role="dialog"
        aria-label={`Tour, step ${step + 1} of ${STEPS.length}: ${title}`}
        data-testid="tour"
        onKeyDown={press}
      >
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Text fw={600}>{title}</Text>
          <CloseButton
            size="sm"
            aria-label="End the tour"
            data-testid="tour-end"
            onClick={() => onGo(null)}
          />
        </Group>
        <Text size="sm" mt={2} aria-live="polite">
          {text}
        </Text>
        <Group justify="space-between" mt="sm" wrap="nowrap">
          <Text size="xs" c="dimmed">
            {step + 1} of {STEPS.length}
          </Text>
          <Group gap="xs" wrap="nowrap">
            {step > 0 && (
              <Button
                size="compact-sm"
                variant="default"
                onClick={() => onGo(step - 1)}
                data-testid="tour-back"
              >
                Back
              </Button>
            )}
            <Button
              ref={next}
              size="compact-sm"
              onClick={() => onGo(last ? null : step + 1)}
              data-testid="tour-next"
            >
              {last ? 'Done' : 'Next'}
            </Button>
          </Group>
        </Group>
      </div>
    </>
  );
}

interface Place {
  ring: { left: number; top: number; width: number; height: number };
  card: { left: number; top: number };
}

/** Where the target is, as long as the window keeps its size. */
function usePlace(target: string): Place | null {
  const [place, setPlace] = useState<Place | null>(null);
  useLayoutEffect(() => {
    const measure = () => {
      const element = document.querySelector(`[data-testid="${target}"]`);
      if (!element) return setPlace(null);
      const { left, top, width, height, bottom } = element.getBoundingClientRect();
      const most = Math.max(MARGIN, document.documentElement.clientWidth - WIDTH - MARGIN);
      setPlace({
        ring: { left: left - 4, top: top - 2, width: width + 8, height: height + 4 },
        card: { left: Math.min(Math.max(left - 8, MARGIN), most), top: bottom + 12 },
      });
    };
    measure();
    window.addEventListener('resize', measure);
    window.addEventListener('scroll', measure, true);
    return () => {
      window.removeEventListener('resize', measure);
      window.removeEventListener('scroll', measure, true);
    };
  }, [target]);
  return place;
}
