import { Anchor, Center, Group, Loader, Stack, Text } from '@mantine/core';
import { Link, useSearchParams } from '@/components/navigation';
import { sentence } from '@/api/client';
import { command } from '@/api/command';
import { DataTable } from '@/components/DataTable';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { Panel } from '@/components/Panel';
import type { PaperSummary, Reproductions, ReproductionSummary } from '@/experiment/data/answers';
import { useReproductions } from '@/experiment/data/queries';
import { Reproduction } from './Reproduction';
import classes from './reproductions.module.css';
import { StateKey } from './StateKey';
import { shares, STATES } from './verdicts';

const ADDRESS = '/experiments/reproductions';

/** The page /experiments/reproductions: how far the papers' figures are reproduced, and why some are not; of one
 *  paper alone with ?paper=NAME. */
export function ReproductionsPage() {
  const query = useReproductions();
  const [search] = useSearchParams();
  return (
    <Page
      title="Reproductions"
      about={
        <>
          What the papers claim, and what we get: only figures that we did not fit count.{' '}
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
      {query.data && <Summary {...query.data} only={search.get('paper')} />}
    </Page>
  );
}

const TITLES: Readonly<Record<string, string>> = {
  'put in': 'Used as an input',
  checked: 'Checked by a test',
  repeats: 'Repeating others',
  'left out': 'Left out',
};

const CAUSES = {
  paper: 'What the paper publishes makes the difference, not EdgeLoom.',
  project: 'EdgeLoom makes the difference, not the paper.',
  unknown: 'Whether the paper or EdgeLoom makes the difference is not known.',
};

/** All papers with their experiments, then the figures that no experiment has; or the paper `only` alone. */
export function Summary({ papers, experiments, others, only }: Reproductions & { only: string | null }) {
  const shown = papers.filter(({ paper }) => paper === only);
  return (
    <Stack gap={14}>
      <Group gap="md" data-testid="papers">
        {[{ paper: '', title: 'All papers' }, ...papers].map(({ paper, title }) => (
          <Anchor
            key={paper}
            component={Link}
            to={paper ? `${ADDRESS}?paper=${paper}` : ADDRESS}
            size="sm"
            fw={paper === (only ?? '') ? 600 : undefined}
          >
            {title}
          </Anchor>
        ))}
      </Group>
      <Group gap="md" data-testid="verdict-key">
        <Text size="sm" c="dimmed">
          A published figure is:
        </Text>
        {STATES.map(({ name, color }) => (
          <span key={name} className={classes.key}>
            <span style={{ background: color }} />
            {name}
          </span>
        ))}
      </Group>
      {(shown.length > 0 ? shown : papers).map((paper) => (
        <Paper
          key={paper.paper}
          paper={paper}
          experiments={experiments.filter((one) => one.paper === paper.paper)}
        />
      ))}
      {shown.length === 0 && <LeftOut rows={others} />}
    </Stack>
  );
}

function Paper({ paper, experiments }: { paper: PaperSummary; experiments: ReproductionSummary[] }) {
  const { title, source, must_know, headlines, compared, confirmed, contradicted } = paper;
  return (
    <Panel
      title={title}
      testId={`paper-${paper.paper}`}
      flush
      extra={
        <Text size="xs" c="dimmed">
          {confirmed} of {compared} independent figures confirmed, {contradicted} contradicted
        </Text>
      }
    >
      <Text size="xs" c="dimmed" px="md" py={8}>
        {source}. {figuresOf(paper)}
      </Text>
      <ul className={classes.mustKnow} data-testid={`must-know-${paper.paper}`}>
        {must_know.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
      <Text size="xs" c="dimmed" px="md" pb={8}>
        All its tables and figures from the command line: <code>{command(`reproduce ${paper.paper}`)}</code>
      </Text>
      <Headlines rows={headlines} />
      {experiments.map((one) => (
        <Reproduction key={one.name} summary={one} />
      ))}
    </Panel>
  );
}

function figuresOf({ figures, in_experiments, put_in, checked, repeats, left_out }: PaperSummary): string {
  const parts = [
    in_experiments && `${in_experiments} in experiments`,
    put_in && `${put_in} used as ${put_in === 1 ? 'an input' : 'inputs'}`,
    checked && `${checked} checked by tests`,
    repeats && `${repeats} repeating others`,
    left_out && `${left_out} left out`,
  ];
  return `${figures} figures: ${parts.filter(Boolean).join(', ')}.`;
}

/** What the paper claims first, with ours, and a sentence that its authors could check. */
function Headlines({ rows }: { rows: PaperSummary['headlines'] }) {
  return (
    <div className={classes.headlines}>
      <DataTable
        minWidth={760}
        verticalSpacing={6}
        rows={rows}
        keyOf={({ claim }) => claim}
        columns={[
          {
            head: 'Claim',
            cell: ({ claim, why, cause }) => (
              <>
                {claim}
                <Text size="xs" c="dimmed">
                  {why}
                  {cause && ` ${CAUSES[cause]}`}
                </Text>
              </>
            ),
          },
          {
            head: 'Published',
            right: true,
            width: 110,
            look: { className: classes.value },
            cell: ({ published }) => published,
          },
          {
            head: 'Ours',
            right: true,
            width: 150,
            look: { className: classes.ours },
            cell: ({ ours }) => ours,
          },
          { head: 'State', width: 160, cell: ({ state }) => <StateKey state={state} /> },
        ]}
      />
    </div>
  );
}

function LeftOut({ rows }: { rows: Reproductions['others'] }) {
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  return (
    <Panel title="Figures outside the experiments" testId="left-out">
      {kinds.map((kind) => (
        <div key={kind}>
          <Text size="sm" fw={500}>
            {TITLES[kind] ?? kind}
          </Text>
          <ul className={classes.reasons}>
            {rows
              .filter((row) => row.kind === kind)
              .map(({ reason, figures, counts }) => (
                <li key={reason}>
                  <b>{figures}</b>
                  <span>
                    {reason}
                    {kind === 'checked' &&
                      `: ${shares(counts)
                        .map(({ name }) => name)
                        .join(', ')}`}
                  </span>
                </li>
              ))}
          </ul>
        </div>
      ))}
    </Panel>
  );
}
