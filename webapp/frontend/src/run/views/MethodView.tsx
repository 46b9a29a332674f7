import type { ComponentType } from 'react';
import { BandsView } from './BandsView';
import { HeadsView } from './HeadsView';
import { type ViewKind, viewOf } from './kinds';
import { PipelineView } from './PipelineView';
import type { ViewProps } from './props';
import { SharesView } from './SharesView';
import { SlotsView } from './SlotsView';
import { SplitView } from './SplitView';
import { TreeView } from './TreeView';

const VIEW: Record<ViewKind, ComponentType<ViewProps>> = {
  heads: HeadsView,
  bands: BandsView,
  slots: SlotsView,
  shares: SharesView,
  tree: TreeView,
  split: SplitView,
  pipeline: PipelineView,
};

/** What only this method has: its head map, its bands, its slots, its tree; nothing where there is nothing special. */
export function MethodView(props: ViewProps) {
  const kind = viewOf(props.plan);
  if (!kind) return null;
  const View = VIEW[kind];
  return <View {...props} />;
}
