import { NumberInput, SimpleGrid } from '@mantine/core';
import { type Draft, FIRST_SAMPLING, MOST_TEMPERATURE } from '@/run/request/draft';

interface Props {
  draft: Draft;
  set: (patch: Partial<Draft>) => void;
  errorOf: (path: string) => string | undefined;
}

/** Whether tokens are drawn at random, and among which. */
export function SamplingForm({ draft: { sampling }, set, errorOf }: Props) {
  const change = (patch: Partial<Draft['sampling']>) => set({ sampling: { ...sampling, ...patch } });
  return (
    <SimpleGrid cols={3} spacing="md" mt="sm">
      <NumberInput
        label="Temperature"
        description="0: the most likely token"
        value={sampling.temperature}
        min={0}
        max={MOST_TEMPERATURE}
        step={0.1}
        error={errorOf('workload.temperature')}
        data-testid="temperature"
        onChange={(next) => change({ temperature: typeof next === 'number' ? next : 0 })}
      />
      {sampling.temperature > 0 && (
        <>
          <NumberInput
            label="Top-p"
            description="The fewest that together are so likely"
            value={sampling.topP}
            min={0.01}
            max={1}
            step={0.05}
            error={errorOf('workload.top_p')}
            data-testid="top-p"
            onChange={(next) => change({ topP: typeof next === 'number' ? next : FIRST_SAMPLING.topP })}
          />
          <NumberInput
            label="Top-k"
            description="The k most likely; 0: all"
            value={sampling.topK}
            min={0}
            allowDecimal={false}
            error={errorOf('workload.top_k')}
            data-testid="top-k"
            onChange={(next) => change({ topK: typeof next === 'number' ? next : FIRST_SAMPLING.topK })}
          />
        </>
      )}
    </SimpleGrid>
  );
}
