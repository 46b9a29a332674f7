import { Button, CloseButton, Text } from '@mantine/core';
import { useState } from 'react';
import { hasSeenTour, rememberTour } from './remembered';
import { useTour } from './tour';
import classes from './tour.module.css';

/** Offers the tour on somebody's first visit. */
export function TourOffer({ user }: { user: string }) {
  const [offered, setOffered] = useState(() => !hasSeenTour(user));
  const go = useTour((state) => state.go);
  if (!offered) return null;
  const end = () => {
    rememberTour(user);
    setOffered(false);
  };
  return (
    <div className={classes.offer} data-testid="tour-offer">
      <Text size="sm">New here? Five steps show what is where.</Text>
      <Button
        size="compact-sm"
        variant="light"
        data-testid="tour-start"
        onClick={() => {
          end();
          go(0);
        }}
      >
        Take the tour
      </Button>
      <CloseButton size="sm" aria-label="No tour" data-testid="tour-refuse" onClick={end} />
    </div>
  );
}
