import { Loader, Text } from '@mantine/core';
import type { Advice } from '@/api/types';

interface Props {
  advice: Pick<Advice, 'answer' | 'finished'>;
  /** The model that is asked about now. */
  model: string | null;
  /** The advice is of an earlier model or cluster. */
  stale: boolean;
}

/** Whether several devices are better than one: said of the model that is chosen, and once all methods are predicted. */
export function Verdict({ advice, model, stale }: Props) {
  if (stale || !advice.finished) {
    return (
      <Text size="sm" c="dimmed" data-testid="advice-working">
        <Loader size={11} mr={6} />
        {stale
          ? `Predicting every method for ${model} …`
          : 'Some methods are not predicted yet: the verdict comes when all are.'}
      </Text>
    );
  }
  return advice.answer ? (
    <Text size="sm" data-testid="advice-answer">
      {advice.answer.sentence}
    </Text>
  ) : null;
}
