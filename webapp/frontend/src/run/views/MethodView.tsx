import type { ReactNode } from 'react';
import type { Plan } from '@/api/types';
import { BandsView } from './BandsView';
import { ExpertsView } from './ExpertsView';
import { GenericView } from './GenericView';
import { HeadsView } from './HeadsView';
import { PipelineView } from './PipelineView';
import type { ViewProps } from './props';
import { SharesView } from './SharesView';
import { SlotsView } from './SlotsView';
import { SplitView } from './SplitView';
import { TreeView } from './TreeView';

type Props = Omit<ViewProps, 'layout' | 'holdings'> & { plan: Plan };

/**
 * The view of a strategy, chosen by the kind of its layout: of a kind without a view of its own, its fields; of a
 * single device or a single stage nothing.
 */
export function MethodView({ plan, ...rest }: Props): ReactNode {
  const { layout, holdings } = plan;
  const { model } = rest;
  const common = { ...rest, holdings };
  switch (layout.kind) {
    case 'single':
    case 'quantised':
    case 'cloud':
      return null;
    case 'pipeline':
    case 'planned_pipeline':
    case 'device_map':
      return layout.stages.length > 1 ? <PipelineView layout={layout} {...common} /> : null;
    case 'pipeline_offload':
    case 'segments':
    case 'sliding_window':
      return <SlotsView layout={layout} {...common} />;
    case 'tensor_parallel':
    case 'galaxy':
      return <SplitView layout={layout} {...common} />;
    case 'positions':
      return <BandsView layout={layout} {...common} />;
    case 'heads':
      return <HeadsView layout={layout} {...common} />;
    case 'shares':
      return <SharesView layout={layout} {...common} />;
    case 'experts':
      return model.num_experts ? <ExpertsView layout={layout} {...common} /> : null;
    case 'tree':
      return <TreeView layout={layout} {...common} />;
    default:
      return <GenericView layout={layout} {...common} />;
  }
}
