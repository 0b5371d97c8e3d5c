// The open conversation on the page: its items, older pages on the way up, what is announced.

import { AnswerView } from "./answer_view.js";
import { BranchesView } from "./branches_view.js";
import { KeyedList } from "./dom.js";
import { FooterView } from "./footer_view.js";
import { FoldView, NoticeView, OperatorView, UserView, WorkingView } from "./message_views.js";
import { loadInSight } from "./more.js";
import { Scroll } from "./scroll.js";

const TICK_MS = 1000;
const NEAR = { rootMargin: "200% 0px" };

const VIEWS = {
  user: (actions) => new UserView(actions),
  answer: () => new AnswerView(),
  operator: () => new OperatorView(),
  notice: (actions) => new NoticeView(actions),
  summary: () => new FoldView("t-summary"),
  superseded: () => new FoldView(),
  working: () => new WorkingView(),
  footer: (actions) => new FooterView(actions),
  branches: (actions, hold) => new BranchesView(actions, hold),
};

export class Thread {
  #parts;
  #list;
  #scroll;
  #working = null;
  #near;

  /** `actions`: editPending, removePending, retryPending, editOwn, retryTurn, selectBranch, loadOlder. */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#list = new KeyedList(parts.items, (item) => this.#view(item, actions));
    this.#scroll = new Scroll(parts.thread, parts.items, parts.toEnd);
    loadInSight(parts.older, () => actions.loadOlder(), {
      root: parts.thread,
      rootMargin: "150% 0px 0px 0px",
    });
    // What is far out of sight keeps its size, and costs the browser nothing.
    this.#near = new IntersectionObserver(
      (seen) => {
        for (const { target, isIntersecting } of seen) target.classList.toggle("far", !isIntersecting);
      },
      { root: parts.thread, ...NEAR },
    );
    // Who clicks into the text wants no ring around it, whatever key comes next.
    parts.thread.addEventListener("pointerdown", () => (parts.thread.dataset.by = "pointer"));
    parts.thread.addEventListener("blur", () => delete parts.thread.dataset.by);
    setInterval(() => this.#working?.tick(Date.now()), TICK_MS);
  }

  /** Shows these items, and nothing else. */
  show({ items, hasMore, loading }) {
    this.#parts.older.hidden = !hasMore;
    this.#parts.loading.hidden = !loading;
    this.#list.update(items);
  }

  /** Another conversation, or a message of one's own: the end is what matters. */
  follow() {
    this.#scroll.follow();
  }

  #view(item, actions) {
    const hold = (element) => this.#scroll.hold(element);
    const view = VIEWS[item.type]?.(actions, hold) ?? new FoldView();
    if (view instanceof WorkingView) this.#working = view;
    this.#near.observe(view.element);
    return view;
  }
}
