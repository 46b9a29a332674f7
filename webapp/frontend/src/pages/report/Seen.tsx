import { Group, Text } from '@mantine/core';
import { useRandomPicture } from '@/api/queries';
import type { ClassReport, RunDetail } from '@/api/types';
import { PictureFrame } from '@/components/PictureFrame';
import { percent } from '@/format/units';
import { Panel } from '@/components/Panel';
import classes from './report.module.css';

/** The input picture, and the classes that a classifier found. */
export function Seen({ run }: { run: RunDetail }) {
  const { model, workload } = run.spec;
  const given = workload.image ?? null;
  const random = useRandomPicture(run.model, run.spec.seed, Boolean(model.vision) && given === null);
  if (!model.vision) return null;
  const found = run.report?.requests[0]?.classes ?? [];
  const rows = (model.vision.image_size / model.vision.patch_size) ** 2;
  const own = given === null && workload.requests > 1 ? ' of request 0' : '';
  return (
    <Panel
      title="Picture"
      about={given ? 'in the size of the model' : `a random one${own}, from seed ${run.spec.seed}`}
      testId="seen"
    >
      <Group align="flex-start" gap="lg" wrap="nowrap">
        <PictureFrame image={given ?? random.data?.image} size={160} alt="The picture as the model sees it" />
        {found.length > 0 ? (
          <Classes found={found} total={model.num_classes ?? 0} />
        ) : (
          <Text size="sm" c="dimmed">
            {model.num_classes
              ? 'No classes: only an emulated run that has finished has them.'
              : `Its ${rows} patches are rows of the prompt.`}
          </Text>
        )}
      </Group>
    </Panel>
  );
}

function Classes({ found, total }: { found: ClassReport[]; total: number }) {
  return (
    <div className={classes.classes}>
      {found.map(({ index, label, probability }) => (
        <div key={index} className={classes.class} data-testid={`class-${index}`}>
          <Text size="sm" truncate fw={index === found[0]?.index ? 600 : undefined}>
            {label || `class ${index}`}
          </Text>
          <div className={classes.classBar}>
            <div style={{ width: `${probability * 100}%` }} />
          </div>
          <Text size="sm" ta="right" className={classes.strong}>
            {percent(probability)}
          </Text>
        </div>
      ))}
      <Text size="xs" c="dimmed">
        the most likely of {total} classes
      </Text>
    </div>
  );
}
