import { notifications } from '@mantine/notifications';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import { ErrorPanel } from '@/components/ErrorPanel';
import type { ExperimentState, StoredExperiment } from '@/experiment/data/answers';
import { FIRST_VIEW } from '@/experiment/data/design';
import { useStudyResults } from '@/experiment/data/queries';
import type { ExperimentDocument } from '@/experiment/data/types';
import { StudyPanel } from './StudyPanel';

interface Props {
  stored: StoredExperiment;
  state: ExperimentState;
  experiment: ExperimentDocument;
  /** Changes when rows do. */
  token: string;
  mayChange: boolean;
}

/** What came with the study from which the experiment was imported; nothing if it was not. */
export function Study({ stored, state, experiment, token, mayChange }: Props) {
  const { id, study } = stored;
  const results = useStudyResults(id, `${token} ${stored.version}`, study !== null);
  const repeat = useChange('experiments', () => api.post(`/experiments/${id}/repeat`));
  if (!study) return null;
  if (results.isError)
    return (
      <ErrorPanel
        title="The study's results cannot be loaded"
        message={sentence(results.error)}
        onRetry={() => results.refetch()}
      />
    );
  if (!results.data) return null;
  const start = () =>
    repeat.mutate(undefined, {
      onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
    });
  const mayRepeat = mayChange && results.data.may_repeat && state !== 'paused';
  return (
    <StudyPanel
      study={study}
      results={results.data}
      experiment={experiment}
      metric={experiment.figures[0]?.metric ?? FIRST_VIEW.metric}
      onRepeat={mayRepeat ? start : undefined}
      isStarting={repeat.isPending}
    />
  );
}
