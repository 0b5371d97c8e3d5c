"""Agents in the admin: an edit makes a version, a version never changes, one is the default."""

import pytest

from gateway_app.models import Agent, AgentVersion
from gateway_app.services import agents as services
from tests.factories import AgentFactory, StaffFactory
from tests.gateway_app.admin.conftest import logged_in, page_of

LIST = "/admin/gateway_app/agent/"
VERSIONS = "/admin/gateway_app/agentversion/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(db) -> Agent:
    return AgentFactory(name="Analyst", slug="analyst", version__system_prompt="Count.\nThen add.")


def form(agent: Agent, **changes: object) -> dict[str, object]:
    """What a browser sends for the agent's form, where nothing but `changes` was touched."""
    version = agent.versions.get(number=agent.current_version)
    sent = {
        "name": agent.name,
        "model": version.model,
        "fallback_models": version.fallback_models.replace("\n", "\r\n"),
        "tools": version.tools.split(),
        "system_prompt": version.system_prompt.replace("\n", "\r\n"),
        "temperature": version.temperature or "",
        "max_output_tokens": version.max_output_tokens or "",
        "edited_version": agent.current_version,
    }
    return {**sent, **changes}


def save(client, agent: Agent, **changes: object):
    return client.post(f"{LIST}{agent.pk}/change/", form(agent, **changes))


def numbers(agent: Agent) -> list[int]:
    return list(agent.versions.order_by("number").values_list("number", flat=True))


def test_it_makes_a_version_of_each_edit(ops_client, operator, agent):
    old = AgentVersion.objects.filter(agent=agent).values().get()
    assert save(ops_client, agent, system_prompt="Sing.", temperature="0.5").status_code == 302
    agent.refresh_from_db()
    assert (agent.current_version, numbers(agent)) == (2, [1, 2])
    new = agent.versions.get(number=2)
    assert (new.system_prompt, new.temperature) == ("Sing.", 0.5)
    assert new.created_by == operator
    assert AgentVersion.objects.filter(agent=agent, number=1).values().get() == old


def test_it_makes_no_version_where_nothing_changed(ops_client, agent):
    assert save(ops_client, agent).status_code == 302
    assert numbers(agent) == [1]


def test_it_renames_without_making_a_version(ops_client, agent):
    assert save(ops_client, agent, name="Accountant").status_code == 302
    agent.refresh_from_db()
    assert (agent.name, numbers(agent)) == ("Accountant", [1])


def test_it_keeps_the_slug(ops_client, agent):
    save(ops_client, agent, slug="other")
    agent.refresh_from_db()
    assert agent.slug == "analyst"


def test_it_refuses_an_edit_of_a_version_that_is_no_longer_current(ops_client, agent):
    stale = form(agent, system_prompt="Mine.")
    services.save_agent_version(
        agent=agent, model="", system_prompt="Theirs.", temperature=None,
        max_output_tokens=None, created_by_id=None,
    )  # fmt: skip
    response = ops_client.post(f"{LIST}{agent.pk}/change/", stale)
    assert "Version 2 was saved while you edited version 1." in page_of(response).text
    assert numbers(agent) == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "gpt-5"}, {"model": "openai:"}, {"model": ":gpt-5"}, {"temperature": "3"},
        {"max_output_tokens": "0"}, {"name": ""}, {"system_prompt": "a\0b"},
        {"fallback_models": "gpt-5"}, {"fallback_models": "openai:"},
        {"fallback_models": " ".join(f"openai:m{n}" for n in range(6))},
    ],
)  # fmt: skip
def test_it_refuses_what_no_model_could_use(ops_client, agent, changes):
    assert save(ops_client, agent, **changes).status_code == 200
    assert numbers(agent) == [1]


def test_it_gives_an_agent_what_is_installed(ops_client, agent):
    assert save(ops_client, agent, tools=["look", "current_time"]).status_code == 302
    assert agent.versions.get(number=2).tools == "current_time\nlook"
    page = page_of(ops_client.get(f"{LIST}{agent.pk}/change/"))
    assert "look: Look in a direction." in page.text
    agent.refresh_from_db()
    assert save(ops_client, agent).status_code == 302
    assert numbers(agent) == [1, 2]
    refused = save(ops_client, agent, tools=["rm"])
    assert "rm is not one of the available choices" in refused.content.decode()


def test_it_lets_an_agent_keep_a_tool_that_is_gone(ops_client, agent):
    agent.versions.update(tools="gone")
    page = page_of(ops_client.get(f"{LIST}{agent.pk}/change/"))
    assert "gone (not installed)" in page.text
    assert save(ops_client, agent, system_prompt="Sing.").status_code == 302
    version = agent.versions.get(number=2)
    assert version.tools == "gone"
    shown = page_of(ops_client.get(f"{VERSIONS}{version.pk}/change/"))
    assert "gone" in shown.text


def test_it_takes_fallback_models_in_their_order(ops_client, agent):
    asked = "anthropic:claude-x\r\n local:smollm2\r\n\r\nanthropic:claude-x"
    assert save(ops_client, agent, fallback_models=asked).status_code == 302
    version = agent.versions.latest("number")
    assert version.fallback_models == "anthropic:claude-x\nlocal:smollm2"
    agent.refresh_from_db()
    assert save(ops_client, agent).status_code == 302
    assert len(numbers(agent)) == 2


def test_it_adds_an_agent_with_its_first_version(ops_client, operator):
    sent = {"name": "Poet", "slug": "poet", "model": "openai:gpt-5", "system_prompt": "Rhyme."}
    assert ops_client.post(f"{LIST}add/", sent).status_code == 302
    poet = Agent.objects.get(slug="poet")
    [version] = poet.versions.all()
    assert (version.number, version.model, version.system_prompt) == (1, "openai:gpt-5", "Rhyme.")
    assert version.created_by == operator
    assert not poet.is_default


def test_it_makes_the_slug_of_the_name_as_it_is_written(ops_client, agent):
    new = ops_client.get(f"{LIST}add/").content.decode()
    assert "&quot;dependency_ids&quot;: [&quot;#id_name&quot;]" in new
    assert "dependency_ids" not in ops_client.get(f"{LIST}{agent.pk}/change/").content.decode()


def test_it_refuses_a_slug_that_is_taken(ops_client, agent):
    assert ops_client.post(f"{LIST}add/", {"name": "x", "slug": agent.slug}).status_code == 200
    assert Agent.objects.filter(slug=agent.slug).count() == 1


def test_it_switches_the_default_agent(ops_client, agent):
    main = Agent.objects.get(is_default=True)
    assert save(ops_client, agent, make_default="on").status_code == 302
    assert list(Agent.objects.filter(is_default=True)) == [agent]
    main.refresh_from_db()
    assert save(ops_client, agent, make_default="").status_code == 302
    assert list(Agent.objects.filter(is_default=True)) == [agent]


def test_it_adds_an_agent_as_the_default(ops_client):
    sent = {"name": "Poet", "slug": "poet", "make_default": "on"}
    assert ops_client.post(f"{LIST}add/", sent).status_code == 302
    assert Agent.objects.get(is_default=True).slug == "poet"


def test_it_lists_versions_with_their_numbers_and_leads_to_each(ops_client, agent):
    save(ops_client, agent, system_prompt="Second.")
    agent.refresh_from_db()
    page = page_of(ops_client.get(f"{LIST}{agent.pk}/change/"))
    assert "2 (current)" in page.text
    first = agent.versions.get(number=1)
    detail = page_of(ops_client.get(f"{VERSIONS}{first.pk}/change/"))
    assert "Count.\nThen add." in detail.text
    listed = page_of(ops_client.get(f"{VERSIONS}?agent__id__exact={agent.pk}"))
    assert "Analyst, version 1" in listed.text
    assert "Assistant" not in listed.text


def test_it_never_changes_a_version(root_client, agent):
    version = agent.versions.get()
    before = AgentVersion.objects.filter(pk=version.pk).values().get()
    change = f"{VERSIONS}{version.pk}/change/"
    assert not {"textarea", "select"} & set(page_of(root_client.get(change)).tags)
    assert root_client.post(change, {"system_prompt": "x"}).status_code == 403
    assert root_client.post(f"{VERSIONS}{version.pk}/delete/", {"post": "yes"}).status_code == 403
    assert root_client.get(f"{VERSIONS}add/").status_code == 403
    assert AgentVersion.objects.filter(pk=version.pk).values().get() == before


def test_it_deletes_no_agent(root_client, agent):
    assert root_client.post(f"{LIST}{agent.pk}/delete/", {"post": "yes"}).status_code == 403


def test_it_shows_agents_to_viewers_and_changes_nothing_for_them(agent):
    viewer = logged_in(StaffFactory(permissions=["gateway_app.view_agent"]))
    page = page_of(viewer.get(f"{LIST}{agent.pk}/change/"))
    assert "Analyst" in page.text
    assert "textarea" not in page.tags
    assert page_of(viewer.get(f"{VERSIONS}{agent.versions.get().pk}/change/"))
    assert save(viewer, agent, name="x").status_code == 403
    assert logged_in(StaffFactory()).get(f"{LIST}{agent.pk}/change/").status_code == 403
    assert logged_in(StaffFactory()).get(VERSIONS).status_code == 403


def test_it_takes_as_many_statements_for_200_agents_as_for_2(ops_client, statements):
    ops_client.get(LIST)
    AgentFactory()
    counts = [statements(ops_client, LIST)]
    for _ in range(98):
        AgentFactory()
    counts.append(statements(ops_client, LIST))
    # web session, user, two permission reads, the count, the page
    assert counts == [6, 6]


def test_it_takes_as_many_statements_for_200_versions_as_for_2(ops_client, agent, statements):
    def add(count: int) -> None:
        for number in range(count):
            services.save_agent_version(
                agent=agent, model="", system_prompt=f"{count} {number}", temperature=None,
                max_output_tokens=None, created_by_id=StaffFactory().pk,
            )  # fmt: skip

    urls = (f"{LIST}{agent.pk}/change/", f"{VERSIONS}?agent__id__exact={agent.pk}")
    add(1)
    few = [statements(ops_client, url) for url in urls]
    add(198)
    assert [statements(ops_client, url) for url in urls] == few
