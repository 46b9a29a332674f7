import { Alert, Button, Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useSession } from '@/api/queries';
import type { RunDetail, RunReport } from '@/api/types';
import type { Service } from '@/run/data/service';
import { endService } from '@/run/feed/commands';
import { CockpitPanel } from '../cockpit/CockpitPanel';
import { AskForm } from './AskForm';
import { Exchange } from './Exchange';
import { Programs } from './Programs';
import classes from './service.module.css';

interface Props {
  run: RunDetail;
  service: Service;
  /** Changes with every event: `service` is the same object. */
  version: number;
  /** Whether requests can be sent now. */
  open: boolean;
  over: boolean;
  mayWrite: boolean;
}

/** A chat with the cluster: prompts, streaming answers, and where each request is in the queue. */
export function ServicePanel({ run, service, version, open, over, mayWrite }: Props) {
  const [asked, setAsked] = useState<readonly string[]>([]);
  const [ending, setEnding] = useState(false);
  const me = useSession().data?.user;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = list.current;
    // Follow the newest answer, unless somebody reads further up.
    if (version > 0 && box && box.scrollHeight - box.scrollTop - box.clientHeight < 160)
      box.scrollTop = box.scrollHeight;
  }, [version]);
  const refusal = service.refused.get(asked.at(-1) ?? '');
  const takes = open && !service.ended;
  return (
    <CockpitPanel
      title="Chat"
      testId="service"
      about={<span data-testid="service-count">{countText(service)}</span>}
      extra={
        takes &&
        run.locked === null && (
          <Button
            size="compact-xs"
            variant="default"
            loading={ending}
            data-testid="end-service"
            title="Takes no more requests, cancels the open ones, and finishes the run with its report"
            onClick={async () => {
              setEnding(true);
              if (!(await endService(run.id))) setEnding(false);
            }}
          >
            End service
          </Button>
        )
      }
    >
      <div className={classes.chat}>
        <div ref={list} className={classes.list} data-testid="exchanges" tabIndex={0} aria-label="Requests">
          <Proof over={over} correctness={run.report?.correctness} />
          {takes && <Programs name={run.name || `${run.strategy} on ${run.cluster_name}`} runId={run.id} />}
          {service.requests.length === 0 && (
            <Text size="sm" c="dimmed" p="md">
              {takes
                ? 'Nobody has asked yet. Ask here, or over /v1 with an API token.'
                : over || service.ended
                  ? 'No request was sent.'
                  : 'Requests can be sent once the run is running.'}
            </Text>
          )}
          {service.requests.map((request) => (
            <Exchange
              key={request.request}
              runId={run.id}
              request={request}
              version={version}
              ahead={request.state === 'waiting' ? service.ahead(request) : 0}
              mayCancel={takes && mayWrite && (run.locked === null || request.by === me)}
            />
          ))}
        </div>
        {service.ended && (
          <Alert variant="light" py={6} data-testid="service-ended">
            {service.ended}
          </Alert>
        )}
        {refusal && takes && (
          <Alert color="red" variant="light" py={6} data-testid="refusal">
            {refusal}
          </Alert>
        )}
        {takes && mayWrite && (
          <AskForm
            runId={run.id}
            most={run.spec.workload.new_tokens}
            onAsked={(id) => setAsked((before) => [...before, id])}
          />
        )}
      </div>
    </CockpitPanel>
  );
}

/** Whether the answers are those of `transformers`, which is known when the service is over. */
function Proof({ over, correctness }: { over: boolean; correctness: RunReport['correctness'] | undefined }) {
  return (
    <Text size="xs" c="dimmed" mb={4} data-testid="answers-checked">
      {proofText(over, correctness)}
    </Text>
  );
}

export function proofText(over: boolean, found: RunReport['correctness'] | undefined): string {
  if (!over) return 'Not checked yet: every answer is compared with transformers when the service ends.';
  if (!found?.checked) return 'No answer was compared with transformers.';
  if (found.ok === null)
    return 'The method is lossy: the report says how far its answers are from transformers.';
  return found.ok
    ? 'Checked: every answer is the one of transformers on one device.'
    : `Answers differ from those of transformers: ${found.why}.`;
}

function countText(service: Service): string {
  const counts = { waiting: 0, working: 0, answered: 0, cancelled: 0 };
  for (const request of service.requests) counts[request.state] += 1;
  const { waiting, working, answered } = counts;
  const parts = [`${answered} answered`];
  if (working) parts.push(`${working} in work`);
  if (waiting) parts.push(`${waiting} waiting`);
  return parts.join(', ');
}
