/** Opens the tour from anywhere: the header shows it. */
import { create } from 'zustand';

interface TourState {
  /** The step that is shown; null while the tour is closed. */
  step: number | null;
  go: (step: number | null) => void;
}

export const useTour = create<TourState>((set) => ({ step: null, go: (step) => set({ step }) }));
