import { useMediaQuery } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Panel, PanelGroup, PanelResizeHandle } from 'react-resizable-panels';
import classes from './cockpit.module.css';

interface Props {
  topology: ReactNode;
  controls: ReactNode;
  /** Null for a run that generates no text. */
  text: ReactNode | null;
  time: ReactNode;
}

/** The panels that together show cause and effect: side by side and resizable, on a narrow window below each other. */
export function Cockpit({ topology, controls, text, time }: Props) {
  const narrow = useMediaQuery('(max-width: 1050px)', false, { getInitialValueInEffect: false });
  if (narrow) {
    return (
      <div className={classes.stack}>
        <div style={{ height: 400 }}>{topology}</div>
        <div style={{ height: 400 }}>{controls}</div>
        {text && <div style={{ height: 240 }}>{text}</div>}
        <div style={{ height: 480 }}>{time}</div>
      </div>
    );
  }
  return (
    <PanelGroup
      direction="vertical"
      autoSaveId="loom-live-rows"
      className={classes.cockpit}
      data-testid="cockpit"
    >
      <Panel defaultSize={42} minSize={15} collapsible className={classes.place}>
        <PanelGroup direction="horizontal" autoSaveId={text ? 'loom-live-top' : 'loom-live-top-2'}>
          <Panel defaultSize={46} minSize={20} collapsible className={classes.place} order={1}>
            {topology}
          </Panel>
          <Handle />
          <Panel defaultSize={text ? 29 : 54} minSize={18} collapsible className={classes.place} order={2}>
            {controls}
          </Panel>
          {text && (
            <>
              <Handle />
              <Panel defaultSize={25} minSize={12} collapsible className={classes.place} order={3}>
                {text}
              </Panel>
            </>
          )}
        </PanelGroup>
      </Panel>
      <Handle />
      <Panel defaultSize={58} minSize={15} collapsible className={classes.place}>
        {time}
      </Panel>
    </PanelGroup>
  );
}

function Handle() {
  return <PanelResizeHandle className={classes.handle} />;
}
