import { Anchor, Center, Group, Loader, Stack, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { Panel } from '@/components/Panel';
import type { PaperSummary, Reproductions, ReproductionSummary } from '@/experiment/data/answers';
import { useReproductions } from '@/experiment/data/queries';
import { Reproduction } from './Reproduction';
import classes from './reproductions.module.css';
import { NEARNESS } from './verdicts';

/** The page /experiments/reproductions: how far the papers' figures are reproduced, and why some are not. */
export function ReproductionsPage() {
  const query = useReproductions();
  return (
    <Page
      title="Reproductions"
      about={
        <>
          Every published figure of the papers: computed here, checked by a test, or left out with a reason.{' '}
          <Anchor component={Link} to="/experiments" size="sm">
            All experiments
          </Anchor>
        </>
      }
    >
      {query.isError && <ErrorPanel message={sentence(query.error)} onRetry={() => query.refetch()} />}
      {query.isPending && (
        <Center mih={300}>
          <Loader type="dots" />
        </Center>
      )}
      {query.data && <Summary {...query.data} />}
    </Page>
  );
}

/** All papers with their experiments, then the figures that no experiment has. */
export function Summary({ papers, experiments, others }: Reproductions) {
  return (
    <Stack gap={14}>
      <Group gap="md" data-testid="verdict-key">
        <Text size="sm" c="dimmed">
          Ours against the published value:
        </Text>
        {NEARNESS.map(({ name, color }) => (
          <span key={name} className={classes.key}>
            <span style={{ background: color }} />
            {name}
          </span>
        ))}
      </Group>
      {papers.map((paper) => (
        <Paper
          key={paper.paper}
          paper={paper}
          experiments={experiments.filter((one) => one.paper === paper.paper)}
        />
      ))}
      <LeftOut rows={others} />
    </Stack>
  );
}

function Paper({ paper, experiments }: { paper: PaperSummary; experiments: ReproductionSummary[] }) {
  const { title, source, figures, in_experiments, checked, left_out } = paper;
  return (
    <Panel
      title={title}
      testId={`paper-${paper.paper}`}
      flush
      extra={
        <Text size="xs" c="dimmed">
          {figures} figures: {in_experiments} in experiments, {checked} checked by tests, {left_out} left out
        </Text>
      }
    >
      <Text size="xs" c="dimmed" px="md" py={8}>
        {source}
      </Text>
      {experiments.map((one) => (
        <Reproduction key={one.name} summary={one} />
      ))}
    </Panel>
  );
}

function LeftOut({ rows }: { rows: Reproductions['others'] }) {
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  return (
    <Panel title="Figures that no experiment has" testId="left-out">
      {kinds.map((kind) => (
        <div key={kind}>
          <Text size="sm" fw={500}>
            {kind === 'checked' ? 'Checked by a test' : 'Left out'}
          </Text>
          <ul className={classes.reasons}>
            {rows
              .filter((row) => row.kind === kind)
              .map(({ reason, figures }) => (
                <li key={reason}>
                  <b>{figures}</b>
                  <span>{reason}</span>
                </li>
              ))}
          </ul>
        </div>
      ))}
    </Panel>
  );
}
